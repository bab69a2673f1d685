"""What a certification takes at its peak, said before the long work begins: a formula, compared with measured peaks."""

from dataclasses import dataclass, fields

from graycert.blocks.cutting import bytes_of_results, bytes_until_done
from graycert.bounds import PATH_BOUNDS
from graycert.problem import Problem
from graycert.sampling import evaluation_mode
from graycert.sampling.recognition import is_recognised
from graycert.sampling.whole_pass import pass_bytes, takes_much

LIBRARIES = 560 * 2**20
"""Bytes of Python, PyTorch, PyTorch Geometric, Numba and SciPy once all that certifying needs is loaded."""

_PER_EDGE = 12  # sources, and their order
_PER_NODE = 8
_LISTED = (
    1.4  # times what a target holds, where bounds are found target by target: an object for each beside the arrays
)


@dataclass(frozen=True, kw_only=True)
class PlannedMemory:
    """Bytes of a certification by what they are for.

    Attributes:
        libraries: Of what is loaded.
        data: Features, edges and labels as they were handed in. What is mapped from a file counts, though the operating
            system gives it up where memory is short.
        graph: Sorted edges.
        results: Bounds, votes and conclusions of all targets that are worked on at once. While the model is called,
            bounds and votes are there, half of it.
        single_votes: What some rules look at besides: the class of every vote, or votes by batches.
        whole_pass: One forward pass of the model over the whole graph, as the audit makes it, and the comparison with
            the model as trained: a copy of the features, messages of the widest layer. Nothing where it is made in
            parts, which takes less than drawing does.
        drawing: What drawing has planned (``setup.memory_planned`` of a result), or what it may take.
    """

    libraries: int
    data: int
    graph: int
    results: int
    single_votes: int
    whole_pass: int
    drawing: int

    @classmethod
    def of(cls, problem: Problem, *, drawing: int) -> "PlannedMemory":
        """Return the plan of a certification, all targets at once.

        Args:
            problem: The problem, prepared.
            drawing: See above.
        """
        graph, data = problem.the_graph, problem.data
        kept = 1.0 if problem.setup.bound in PATH_BOUNDS else _LISTED
        tensors = [getattr(data, name, None) for name in ("x", "edge_index", "y")]
        return cls(
            libraries=LIBRARIES,
            data=sum(int(each.nbytes) for each in tensors if each is not None),
            graph=_PER_EDGE * graph.num_edges + _PER_NODE * graph.num_nodes,
            results=int(kept * bytes_of_results(problem) * problem.targets.size),
            single_votes=bytes_until_done(problem) * problem.targets.size,
            whole_pass=_whole_pass(problem),
            drawing=drawing,
        )

    @property
    def num_bytes(self) -> int:
        """The peak: passes over the whole graph, draws and conclusions follow one another."""
        calling = self.results // 2 + max(self.whole_pass, self.drawing)
        return self.libraries + self.data + self.graph + self.single_votes + max(self.results, calling)

    def in_words(self) -> str:
        """Return the plan as a sentence."""
        parts = ", ".join(
            f"{each.name.replace('_', ' ')} {getattr(self, each.name) / 2**30:.2f}" for each in fields(self)
        )
        return f"At its peak this takes about {self.num_bytes / 2**30:.1f} GiB of memory (GiB: {parts})."


def _whole_pass(problem: Problem) -> int:
    model, x, num_edges = problem.model, problem.data.x, problem.the_graph.num_edges
    if takes_much(model, x, num_edges=num_edges):
        with evaluation_mode(model):
            if is_recognised(model):
                return 0
    return pass_bytes(model, x, num_edges=num_edges)
