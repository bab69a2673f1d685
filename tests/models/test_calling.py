"""Models that are called in another way: the line that a refusal prints is run, and works."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch_geometric
import torch_geometric.nn as pyg
from safetensors.torch import save_file
from torch import nn
from torch_geometric.data import Data

import graycert
from graycert._types import NO_CLASS
from graycert.errors import InvalidParameterError
from graycert.models import load_weights
from graycert.sampling.scores import voted_class
from graycert.zoo import zoo_graph

SMOOTHING = graycert.InterceptionSmoothing(p_delete=0.31, p_ablate=0.6)
DRAWS = graycert.Draws(num_selection=40, num_estimation=80)
EDGES = {}
NOBODY = torch.empty(2, 0, dtype=torch.long)


def two_classes():
    data = zoo_graph()
    data.y = data.y.clamp(max=1)
    return data


def gnn(out=3, **options):
    return pyg.GCN(8, 8, 2, out, **options)


class Holding(nn.Module):
    """A GNN and another way to call it."""

    def __init__(self, out=3):
        super().__init__()
        self.net = gnn(out)
        self.aside = nn.Dropout()  # so that there is more than one part


class OnData(Holding):
    def forward(self, data):
        return self.net(data.x, data.edge_index)


class OnMatrix(Holding):
    def forward(self, x, adj_t):
        assert bool((adj_t.values() == 1).all())
        return self.net(x, adj_t)


class OnEdgeIndex(Holding):
    def forward(self, x, edge_index):
        return self.net(x, edge_index.get_csc() and edge_index.as_tensor())


class OneLogit(Holding):
    def __init__(self, flat=True):
        super().__init__(1)
        self.flat = flat

    def forward(self, x, edge_index):
        z = self.net(x, edge_index)
        return z.squeeze(-1) if self.flat else z


class OneProbability(OneLogit):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).sigmoid()


class Several(Holding):
    def forward(self, x, edge_index):
        return x, self.net(x, edge_index), None


class SeveralWithLogit(OneLogit):
    def forward(self, x, edge_index):
        return self.net(x, edge_index).sum(), super().forward(x, edge_index)


class Mapped(Holding):
    def forward(self, x, edge_index):
        return {"loss": None, "logits": self.net(x, edge_index)}


class DataToTuple(OnData):
    def forward(self, data):
        return super().forward(data), data.x


class EncoderAndHead(nn.Module):
    """Its forward returns a loss, as that of a LightningModule may."""

    def __init__(self):
        super().__init__()
        self.encoder, self.head = gnn(8), nn.Linear(8, 3)

    def forward(self, batch):
        return nn.functional.cross_entropy(self.head(self.encoder(batch.x, batch.edge_index)), batch.y)


def mlp():
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))


class OnlyPart(nn.Module):
    def __init__(self):
        super().__init__()
        self.gnn = gnn()

    def forward(self, data, mode):
        raise NotImplementedError(mode)


SAME = {  # model -> what it computes, as scores of (x, edge_index), called by hand
    OnData: lambda m, x, e: m(Data(x=x, edge_index=e)),
    OnMatrix: lambda m, x, e: m.net(x, e),
    OnEdgeIndex: lambda m, x, e: m.net(x, e),
    OneLogit: lambda m, x, e: torch.stack([torch.zeros(x.size(0)), m(x, e)], dim=1),
    lambda: OneLogit(flat=False): lambda m, x, e: torch.cat([torch.zeros(x.size(0), 1), m(x, e)], dim=1),
    OneProbability: lambda m, x, e: torch.stack([1 - m(x, e), m(x, e)], dim=1),
    Several: lambda m, x, e: m(x, e)[1],
    SeveralWithLogit: lambda m, x, e: torch.stack([torch.zeros(x.size(0)), m(x, e)[1]], dim=1),
    Mapped: lambda m, x, e: m(x, e)["logits"],
    DataToTuple: lambda m, x, e: m(Data(x=x, edge_index=e))[0],
    EncoderAndHead: lambda m, x, e: m.head(m.encoder(x, e)),
    OnlyPart: lambda m, x, e: m.gnn(x, e),
    mlp: lambda m, x, e: m(x),
}


def certified(model, data, **options):
    return graycert.certify(
        model, data, smoothing=SMOOTHING, threat=graycert.NodeFeatureThreat(), draws=DRAWS, **options
    )


def after_the_printed_line(refused, **scope):
    """Run what stands after "write: " in a refusal; return the variables."""
    line = re.search(r"(?:Write|write|Convert it): (.*)$", str(refused.value)).group(1).rstrip(".")
    scope = {**scope, "graycert": graycert, "torch": torch, "torch_geometric": torch_geometric}
    exec(line, scope)
    return SimpleNamespace(**{name: scope[name] for name in ("model", "data") if name in scope})


@pytest.mark.few(1)
@pytest.mark.parametrize("make", list(SAME))
def test_the_printed_line_works_and_certifies_what_the_model_computes(make):
    torch.manual_seed(0)
    data, model = two_classes(), make().eval()
    with pytest.raises(graycert.InvalidParameterError, match="Write: model = graycert") as refused:
        certified(model, data)
    adapted = after_the_printed_line(refused, model=model).model
    with torch.no_grad():
        expected = SAME[make](model, data.x, data.edge_index)
        torch.testing.assert_close(adapted(data.x, data.edge_index), expected, rtol=1e-5, atol=1e-6)
    report = graycert.audit_model(adapted, data)
    assert report.passed, str(report)
    assert report.counted_steps == (0 if make is mlp else 2)
    assert certified(adapted, data).setup.num_layers == max(1, report.counted_steps)


@pytest.mark.few(1)
@pytest.mark.parametrize("make", [OneLogit, OnData, OnMatrix, OnEdgeIndex, EncoderAndHead])
def test_votes_are_those_of_the_same_network_written_the_usual_way(make):
    """Draw by draw, on the engine for any model: the adapter changes what is called, not what is computed."""
    torch.manual_seed(0)
    data, model = two_classes(), make().eval()

    class Usual(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x, edge_index):
            return SAME[make](self.inner, x, edge_index)

    with pytest.raises(graycert.InvalidParameterError) as refused:
        certified(model, data)
    adapted = after_the_printed_line(refused, model=model).model
    execution = graycert.Execution(engine="torch")
    ours, theirs = certified(adapted, data, execution=execution), certified(Usual(), data, execution=execution)
    for first, second in zip(ours.votes, theirs.votes, strict=True):
        np.testing.assert_array_equal(first.counts, second.counts)
    np.testing.assert_array_equal(ours.radius, theirs.radius)


@pytest.mark.deep
def test_the_compiled_kernels_take_a_single_logit_and_an_encoder_with_a_head():
    torch.manual_seed(0)
    data = two_classes()
    adapted = {
        "one logit": graycert.as_node_classifier(gnn(1), output="logit"),
        "one logit, squeezed": graycert.as_node_classifier(OneLogit(), output="logit"),
        "two parts": graycert.as_node_classifier(
            {"encoder": gnn(8), "head": nn.Linear(8, 3)},
            call=lambda parts, x, edge_index: parts["head"](parts["encoder"](x, edge_index)),
        ),
        "chain": graycert.as_node_classifier((gnn(8), nn.Linear(8, 3))),
    }
    for name, model in adapted.items():
        compiled = certified(model, data, execution=graycert.Execution(engine="compiled"))
        plain = certified(model, data, execution=graycert.Execution(engine="torch"))
        for first, second in zip(compiled.votes, plain.votes, strict=True):
            np.testing.assert_array_equal(first.counts, second.counts, err_msg=name)


def test_an_exact_tie_of_a_single_logit_is_a_vote_for_no_class():
    class Given(nn.Module):
        def forward(self, x, edge_index):
            return x[:, 0]

    z = torch.tensor([[1e-30], [-1e-30], [0.0], [-0.0], [torch.nan], [torch.inf]])
    model = graycert.as_node_classifier(Given(), output="logit")
    assert voted_class(model(z, NOBODY)).tolist() == [1, 0, NO_CLASS, NO_CLASS, NO_CLASS, 1]
    p = torch.tensor([[0.5], [0.5 + 2**-24], [0.5 - 2**-25], [0.0], [1.0], [torch.nan]])
    model = graycert.as_node_classifier(Given(), output="probabilities")
    assert voted_class(model(p, NOBODY)).tolist() == [NO_CLASS, 1, 0, 0, 1, NO_CLASS]


def test_a_logit_is_told_from_a_probability_though_all_its_values_lie_between_0_and_1():
    torch.manual_seed(0)
    data, model = two_classes(), OneLogit().eval()
    data.x *= 1e-3
    with torch.no_grad():
        model.net.convs[-1].bias += 0.5
        seen = model(data.x, data.edge_index)
    assert 0 < float(seen.min()) <= float(seen.max()) < 1
    for each, word in ((model, '"logit"'), (OneProbability(), '"probabilities"')):
        with pytest.raises(graycert.InvalidParameterError, match=f"output={word}\\)$"):
            certified(each, data)


def test_one_node_and_a_squeezed_logit():
    class Squeezed(nn.Module):
        def forward(self, x, edge_index):
            return x[:, :1].squeeze()

    model = graycert.as_node_classifier(Squeezed(), output="logit")
    assert model(torch.ones(1, 2), NOBODY).tolist() == [[0.0, 1.0]]


def test_a_constant_logit_of_zero_is_refused_not_certified_as_class_zero():
    class Zero(OneLogit):
        def forward(self, x, edge_index):
            return (super().forward(x, edge_index) - 1e3).relu()

    torch.manual_seed(0)
    with pytest.raises(graycert.UnsoundSetupError, match="scores-single-out-no-class"):
        certified(graycert.as_node_classifier(Zero(), output="logit"), two_classes())


@pytest.mark.deep
def test_saved_and_verified_with_the_adapted_model(tmp_path):
    torch.manual_seed(0)
    data, model = zoo_graph(), OnData()
    adapted = graycert.as_node_classifier(model, call="data")
    certified(adapted, data).save(tmp_path / "run")
    report = graycert.verify(tmp_path / "run", data=data, model=adapted)
    assert report.passed, str(report)
    with torch.no_grad():
        for values in model.parameters():
            values.mul_(-1.5)
    assert not graycert.verify(tmp_path / "run", data=data, model=adapted).passed


def test_weights_of_the_model_inside_and_of_the_whole_are_read(tmp_path):
    torch.manual_seed(0)
    model = OneLogit()
    adapted = graycert.as_node_classifier(model, output="logit")
    for number, saved in enumerate((model, adapted)):
        save_file(saved.state_dict(), tmp_path / f"{number}.safetensors")
        other = graycert.as_node_classifier(OneLogit(), output="logit")
        load_weights(other, tmp_path / f"{number}.safetensors")
        assert all(torch.equal(a, b) for a, b in zip(adapted.parameters(), other.parameters(), strict=True))
    save_file(gnn().state_dict(), tmp_path / "foreign.safetensors")
    with pytest.raises(graycert.InvalidFileError, match="does not fit the model"):
        load_weights(adapted, tmp_path / "foreign.safetensors")


class TestCompiled:
    @pytest.mark.few(1)
    @pytest.mark.parametrize("how", ["whole", "in place", "part", "forward"])
    def test_a_compiled_module_is_certified_as_it_was_written(self, how):
        torch.manual_seed(0)
        data, model = zoo_graph(), OnlyNet()
        expected = certified(model, data)
        if how == "whole":
            compiled = torch.compile(model, backend="eager")
        elif how == "in place":
            compiled = model
            compiled.compile(backend="eager")
        elif how == "part":
            model.net = torch.compile(model.net, backend="eager")
            compiled = model
        else:
            model.forward = torch.compile(model.forward, backend="eager")
            compiled = model
        found = certified(compiled, data)
        np.testing.assert_array_equal(found.votes[1].counts, expected.votes[1].counts)
        assert found.setup.engine == expected.setup.engine


class OnlyNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = gnn()

    def forward(self, x, edge_index):
        return self.net(x, edge_index)


def test_a_module_with_a_trainer_that_is_not_attached():
    class LikeLightning(OnlyNet):
        @property
        def trainer(self):
            raise RuntimeError("not attached to a Trainer")

        def training_step(self, batch, batch_idx):
            raise NotImplementedError

    torch.manual_seed(0)
    lightning, data = LikeLightning(), zoo_graph()
    assert np.array_equal(certified(lightning, data).votes[1].counts, certified(lightning.net, data).votes[1].counts)


class TestEmbedding:
    def graph(self):
        data = zoo_graph()
        del data.x
        data.num_nodes = 60
        return data

    @pytest.mark.few(1)
    @pytest.mark.parametrize("nodes_first", [False, True])
    def test_the_table_becomes_the_features(self, nodes_first):
        class ByTable(nn.Module):
            def __init__(self):
                super().__init__()
                self.table, self.net = nn.Embedding(60, 8), gnn()

        class EdgesAlone(ByTable):
            def forward(self, edge_index):
                return self.net(self.table.weight, edge_index)

        class NodesFirst(ByTable):
            def forward(self, nodes, edge_index):
                return self.net(self.table(nodes), edge_index)

        torch.manual_seed(0)
        data, model = self.graph(), (NodesFirst if nodes_first else EdgesAlone)()
        with pytest.raises(graycert.InvalidParameterError, match="certificate is about features") as refused:
            certified(model, data)
        written = after_the_printed_line(refused, model=model, data=data)
        report = graycert.audit_model(written.model, written.data)
        assert report.passed, str(report)
        assert report.num_layers == 2
        ours, usual = certified(written.model, written.data), certified(model.net, written.data)
        np.testing.assert_array_equal(ours.votes[1].counts, usual.votes[1].counts)

    def test_without_a_table_the_reason_is_the_features(self):
        with pytest.raises(graycert.InvalidParameterError, match=r"`data\.x` must hold the node features"):
            certified(gnn(), self.graph())

    def test_two_tables_are_not_guessed_at(self):
        two = nn.ModuleDict({"first": nn.Embedding(60, 8), "second": nn.Embedding(60, 8)})
        with pytest.raises(graycert.InvalidParameterError, match="2 modules of type"):
            graycert.as_node_classifier(two, call="embedding")


class TestRefusals:
    def test_a_function_that_holds_modules(self):
        head, model = nn.Linear(8, 3), gnn(8)
        for call in (
            lambda m, x, edge_index: head(m(x, edge_index)),
            lambda _, x, edge_index: model(x, edge_index),
            lambda m, x, edge_index, last=head: last(m(x, edge_index)),
            lambda m, x, edge_index: (lambda: head(m(x, edge_index)))(),
        ):
            with pytest.raises(graycert.InvalidParameterError, match="would not be copied"):
                graycert.as_node_classifier(model, call=call)

    def test_an_attribute_of_the_same_name_as_a_global_module_is_none(self):
        scope = {"head": nn.Linear(1, 1), "encoder": nn.Linear(1, 1)}
        exec("call = lambda m, x, e: m.head(m.encoder(x, e))", scope)
        assert graycert.as_node_classifier(EncoderAndHead(), call=scope["call"]).call is scope["call"]

    @pytest.mark.parametrize(
        ("options", "name"),
        [
            ({"call": "graph"}, "call"),
            ({"call": 3}, "call"),
            ({"call": gnn().forward}, "call"),
            ({"call": partial(lambda m, x, edge_index, by: by * m(x, edge_index), by=2.0)}, "call"),
            ({"output": 0.5}, "output"),
            ({"output": True}, "output"),
            ({"output": (0, "logits?")}, "output"),
        ],
    )
    def test_arguments(self, options, name):
        with pytest.raises(graycert.InvalidParameterError, match=f"`{name}` must"):
            graycert.as_node_classifier(gnn(), **options)

    def test_what_is_no_module(self):
        for model in (lambda x, edge_index: x, (), [1], "gcn"):
            with pytest.raises(graycert.InvalidParameterError, match="`model` must be"):
                graycert.as_node_classifier(model)

    def test_several_modules_handed_to_certify(self):
        torch.manual_seed(0)
        parts = (gnn(8), nn.Linear(8, 3))
        with pytest.raises(graycert.InvalidParameterError, match="got tuple") as refused:
            certified(parts, zoo_graph())
        adapted = after_the_printed_line(refused, model=parts).model
        assert certified(adapted, zoo_graph()).setup.num_layers == 2

    def test_outputs_that_are_not_there(self):
        data = zoo_graph()
        for output, rule in ((7, "name a part"), ("scores", "name a part"), ("logit", 'got "logit" for values')):
            model = graycert.as_node_classifier(Several() if output != "logit" else gnn(), output=output)
            with pytest.raises(graycert.InvalidParameterError, match=rule):
                certified(model, data)
        with pytest.raises(graycert.InvalidParameterError, match="a word for a model that returns a tensor"):
            certified(graycert.as_node_classifier(gnn(), output=0), data)

    def test_classes_instead_of_scores_are_not_advised_as_logits(self):
        class Classes(OnlyNet):
            def forward(self, x, edge_index):
                return super().forward(x, edge_index).argmax(dim=1)

        with pytest.raises(graycert.InvalidParameterError, match=r"got torch\.int64 of shape \(60,\)") as refused:
            certified(Classes(), zoo_graph())
        assert "as_node_classifier" not in str(refused.value)

    def test_a_leak_is_found_through_the_adapter(self):
        class Leaky(OnData):
            def forward(self, data):
                return super().forward(data) + data.x.mean()

        report = graycert.audit_model(graycert.as_node_classifier(Leaky(), call="data"), zoo_graph())
        assert "message-leak" in {check.slug for check in report.checks}

    def test_features_held_by_the_function_are_found(self):
        data = zoo_graph()
        x = data.x.clone()
        model = graycert.as_node_classifier(gnn(), call=lambda m, _, edge_index: m(x, edge_index))
        with pytest.raises(graycert.UnsoundSetupError, match="ignores-features"):
            certified(model, data)

    @pytest.mark.parametrize("where", ["closure", "global", "attribute of the function"])
    def test_memory_of_the_function_is_found(self, where):
        edges = {}

        def remembering(m, x, edge_index):
            kept = edges if where == "closure" else EDGES if where == "global" else remembering.kept
            return m(x, kept.setdefault(x.shape, edge_index))

        remembering.kept = {}
        report = graycert.audit_model(graycert.as_node_classifier(gnn(), call=remembering), zoo_graph())
        assert not report.passed
        assert not EDGES
        assert not edges
        assert not remembering.kept


class TestTokenAndSkip:
    def test_the_token_is_that_of_the_model_or_of_the_adapter(self):
        model = OnData()
        adapted = graycert.as_node_classifier(model, call="data")
        assert getattr(adapted, "ablation_token", None) is None
        model.ablation_token = nn.Parameter(torch.ones(8))
        assert adapted.ablation_token is model.ablation_token
        adapted = graycert.as_node_classifier(gnn())
        adapted.ablation_token = nn.Parameter(torch.full((8,), 2.0))
        assert float(adapted.ablation_token.detach().sum()) == 16
        assert "ablation_token" in dict(adapted.named_parameters())

    def test_a_skip_connection_of_one_logit_adds_to_it(self):
        class Skipping(OneLogit):
            skip = True

            def skip_logits(self, x):
                return x[:, 0]

        torch.manual_seed(0)
        data = zoo_graph()
        adapted = graycert.as_node_classifier(Skipping(), output="logit")
        torch.testing.assert_close(adapted.skip_logits(data.x), torch.stack([0 * data.x[:, 0], data.x[:, 0]], dim=1))
        with pytest.raises(graycert.UnsoundSetupError, match="skip-exposes-target"):
            certified(adapted, data)
        with pytest.raises(graycert.InvalidParameterError, match="skip connection"):
            graycert.as_node_classifier(Skipping(), output="probabilities")


class TestGraphsStoredInAnotherWay:
    def test_edge_index_class_and_sparse_matrix(self):
        torch.manual_seed(0)
        plain, model = zoo_graph(), OnlyNet()
        expected = certified(model, plain)
        matrix = torch.sparse_coo_tensor(
            plain.edge_index.flip(0), torch.ones(plain.num_edges), (60, 60), check_invariants=True
        ).coalesce()
        for changed in (
            Data(x=plain.x, y=plain.y, edge_index=torch_geometric.EdgeIndex(plain.edge_index, sparse_size=(60, 60))),
            Data(x=plain.x, y=plain.y, adj_t=matrix),
        ):
            with pytest.raises(graycert.InvalidParameterError, match="Convert it") as refused:
                certified(model, changed)
            found = certified(model, after_the_printed_line(refused, data=changed).data)
            np.testing.assert_array_equal(found.votes[1].counts, expected.votes[1].counts)


class TestLazyAndPadded:
    def test_a_lazy_layer_says_so_and_the_line_works(self):
        class Lazy(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = pyg.GCNConv(-1, 3)

            def forward(self, x, edge_index):
                return self.conv(x, edge_index)

        torch.manual_seed(0)
        data, model = zoo_graph(), Lazy()
        with pytest.raises(graycert.InvalidParameterError, match="made at the first call") as refused:
            certified(model, data)
        assert "model(data.x, data.edge_index), of a HeteroData" in str(refused.value)
        model(data.x, data.edge_index)
        assert certified(model, data).setup.num_layers == 1


class Trainer:
    """Holds an encoder and a head, as many do."""

    def __init__(self):
        self.encoder, self.head = pyg.SAGEConv(8, 16), nn.Linear(16, 3)
        self.layers, self.bound, self.partial = [self.head], self.head.forward, partial(self.head)

    def calls(self):
        layers, bound, part = self.layers, self.bound, self.partial
        return {
            "attribute": lambda model, x, edge_index: self.head(model(x, edge_index)),
            "list": lambda model, x, edge_index: layers[0](model(x, edge_index)),
            "bound method": lambda model, x, edge_index: bound(model(x, edge_index)),
            "partial function": lambda model, x, edge_index: part(model(x, edge_index)),
        }


@pytest.mark.parametrize("way", ["attribute", "list", "bound method", "partial function"])
def test_a_call_reaches_no_other_module_in_any_way(way):
    trainer = Trainer()
    with pytest.raises(InvalidParameterError, match="`call` must call no module but its first argument"):
        graycert.as_node_classifier(trainer.encoder, call=trainer.calls()[way])
    graycert.as_node_classifier(trainer.encoder, call=lambda model, x, edge_index: model(x, edge_index))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:The .grad attribute:UserWarning")
def test_what_torchscript_runs_is_wrapped_by_the_line_that_is_printed():
    class Summing(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 3)

        def forward(self, x, edge_index):
            return self.linear(torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]]))

    data = zoo_graph()
    model = torch.jit.trace(Summing(), (data.x, data.edge_index))
    with pytest.raises(InvalidParameterError, match=r"write: model = graycert.as_node_classifier\(model\)"):
        graycert.audit_model(model, data, num_layers=1)
    assert graycert.audit_model(graycert.as_node_classifier(model), data, num_layers=1).passed
