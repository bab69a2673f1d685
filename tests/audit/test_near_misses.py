"""Models that leak only for values of everyday ranges, or remember where only one more step of looking shows it."""

import contextvars
import functools
import threading

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from graycert.audit import audit_model
from graycert.audit.memory import nearly_the_same
from graycert.errors import InvalidParameterError
from support.two_layers import CLASSES, WIDTH, TwoLayers


def toy(*, binary=True):
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(60, (2, 90), generator=generator)
    edges = edges[:, edges[0] != edges[1]]
    x = torch.randn(60, WIDTH, generator=generator)
    return Data(
        x=(x > 0).float() if binary else x, edge_index=torch.unique(torch.cat([edges, edges.flip(0)], 1), dim=1)
    )


def slugs(model, data):
    return {check.slug for check in audit_model(model, data).checks if not check.passed}


# values of everyday ranges: what a guess of the unit looks for

GUESSES = {
    "percent": lambda x: x / 100 if 20 < x.max() <= 100 else x,
    "pixels": lambda x: x / 255 if 2 < x.max() <= 255 else x,
    "bright pixels": lambda x: x / 255 if 128 < x.max() <= 255 else x,
    "years": lambda x: x - 2000 if ((x > 1900) & (x < 2100)).any() else x,
    "large numbers": lambda x: x / 1e6 if 1e6 < x.max() < 1e7 else x,
    "minus zero": lambda x: x + 1 if (x.signbit() & (x == 0)).any() else x,
    "missing": lambda x: x + 1 if (x == -999).any() else x,
    "tiny": lambda x: x + 1 if ((x != 0) & (x.abs() < 1e-6)).any() else x,
    "several large values": lambda x: x + 1 if torch.unique(x[x.isfinite() & (x > 5)]).numel() >= 4 else x,
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", list(GUESSES))
def test_a_guess_of_the_unit_is_a_leak(name):
    class Guesses(TwoLayers):
        def forward(self, x, edge_index):
            return self.gnn(GUESSES[name](x), edge_index)

    assert "message-leak" in slugs(Guesses(), toy())


# memory


def fit(kept, x):
    if "scale" not in kept:
        kept["scale"] = x.nan_to_num().abs().clamp(max=1e4).max() + 1
    return x / kept["scale"]


def fitted():
    scale = None

    def prepare(x):
        nonlocal scale
        if scale is None:
            scale = x.nan_to_num().abs().clamp(max=1e4).max() + 1
        return x / scale

    return prepare


def in_hook():
    model, prepare = TwoLayers(), fitted()
    model.first.register_forward_hook(lambda module, inputs, out: prepare(out))
    return model


def in_partial_of_hook():
    model, prepare = TwoLayers(), functools.partial(fit, {})
    model.register_forward_pre_hook(lambda module, inputs: (prepare(inputs[0]), inputs[1]))
    return model


class InPrivateFunction(TwoLayers):
    def __init__(self):
        super().__init__()
        self._prepare = fitted()

    def forward(self, x, edge_index):
        return self.gnn(self._prepare(x), edge_index)


class Helper:
    def __init__(self):
        self._kept = {}


HELPER, LOCAL, VARIABLE = Helper(), threading.local(), contextvars.ContextVar("kept", default=None)


class InPrivateOfHelper(TwoLayers):
    def forward(self, x, edge_index):
        return self.gnn(fit(HELPER._kept, x), edge_index)


class ThreadLocal(TwoLayers):
    def forward(self, x, edge_index):
        return self.gnn(fit(LOCAL.__dict__, x), edge_index)


class ContextVariable(TwoLayers):
    def forward(self, x, edge_index):
        if VARIABLE.get() is None:
            VARIABLE.set({})
        return self.gnn(fit(VARIABLE.get(), x), edge_index)


class Keyed(TwoLayers):
    """Scores kept by a key that is not all of the input."""

    def __init__(self, key):
        super().__init__()
        self.key, self.kept = key, {}

    def forward(self, x, edge_index):
        key = self.key(x, edge_index)
        if key not in self.kept:
            self.kept[key] = self.gnn(x, edge_index)
        return self.kept[key].clone()


KEYS = {
    "edges": lambda x, edge_index: (len(x), edge_index.numpy().tobytes()),
    "sums": lambda x, edge_index: (x.shape, round(float(x.sum()), 3), int(edge_index.sum())),
    "every seventh row": lambda x, edge_index: (x.shape, x[::7].numpy().tobytes(), edge_index.numpy().tobytes()),
    "sorted columns": lambda x, edge_index: (x.sort(dim=0).values.numpy().tobytes(), edge_index.numpy().tobytes()),
}


class Skips(TwoLayers):
    skip = True

    def __init__(self):
        super().__init__()
        self.direct, self.kept = nn.Linear(WIDTH, CLASSES), {}


class SkipFitted(Skips):
    def skip_logits(self, x):
        return self.direct(fit(self.kept, x))


class SkipFittedInClass(Skips):
    found: dict = {}  # noqa: RUF012 (what is tested)

    def skip_logits(self, x):
        return self.direct(fit(self.found, x))


class SkipHonest(Skips):
    def skip_logits(self, x):
        return self.direct(x)


REMEMBERS = {
    "hook": in_hook,
    "partial": in_partial_of_hook,
    "private function": InPrivateFunction,
    "private of a helper": InPrivateOfHelper,
    "thread": ThreadLocal,
    "context": ContextVariable,
    "skip": SkipFitted,
    "skip, class": SkipFittedInClass,
    **{f"by {name}": functools.partial(Keyed, key) for name, key in KEYS.items()},
}


@pytest.mark.few(2)
@pytest.mark.parametrize("name", list(REMEMBERS))
def test_memory_is_found_one_step_further(name):
    assert "not-deterministic" in slugs(REMEMBERS[name](), toy())


@pytest.mark.parametrize("make", [SkipHonest, lambda: Keyed(lambda *given: tuple(x.numpy().tobytes() for x in given))])
def test_an_honest_skip_and_an_exact_cache_pass(make):
    assert not slugs(make(), toy())


def test_a_tensor_stored_in_a_global_of_the_name_of_an_attribute_is_no_obstacle():
    model = FitsBeforehand().eval()
    with torch.no_grad():
        model(toy().x, toy().edge_index)
    try:
        assert "not-deterministic" in slugs(model, toy())
    finally:
        globals().pop("kept_mean", None)


class FitsBeforehand(TwoLayers):
    def forward(self, x, edge_index):
        global kept_mean
        if "kept_mean" not in globals():
            kept_mean = x.mean(dim=0)
        return self.gnn(x - kept_mean, edge_index)


def test_what_is_nearly_the_same_has_the_same_summaries():
    x = toy(binary=False).x
    near = nearly_the_same(x)
    assert not torch.equal(near, x)
    assert torch.equal(near.sort(dim=0).values, x.sort(dim=0).values)
    assert torch.equal(near[::7], x[::7])


# copies


class Twin(TwoLayers):
    def __deepcopy__(self, memo):
        return TwoLayers()


class Same(TwoLayers):
    def __deepcopy__(self, memo):
        return self


class Reduced(TwoLayers):
    def __reduce_ex__(self, protocol):
        return TwoLayers, (), self.__dict__


@pytest.mark.parametrize("make", [Twin, Same, Reduced])
def test_a_copy_is_a_copy(make):
    with pytest.raises(InvalidParameterError, match="deepcopy"):
        audit_model(make(), toy())
