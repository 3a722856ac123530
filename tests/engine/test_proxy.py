"""Objects that live in the worker behave for a check as real ones do."""

import copy
import gc

import pytest
import torch
from torch import nn

from autograder import checks
from autograder.mistakes import Common
from autograder.wire import protocol, proxy
from autograder.wire.proxy import Link, Remote

STUDENT = """
import torch
from torch import nn
import collections

def matmul(x, y):
    return x @ y

def in_place(x):
    x += 1
    return x

def same(x):
    return x

def both(x, y):
    return x * y, {"sum": x + y}

class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.first = nn.Linear(dim, dim)
        self.second = nn.Linear(dim, dim)
        self.second.weight = self.first.weight
        self.layers = nn.ModuleList([self.first, self.second])
        self.register_buffer("scale", torch.ones(1))
        self.calls = 0
        self.dropout = nn.Dropout(0.5)

    def forward(self, x):
        self.calls += 1
        return self.dropout(self.second(self.first(x).relu())) * self.scale

def raises(kind):
    class Mine(ValueError):
        pass
    raise {"value": ValueError, "mine": Mine, "key": KeyError, "group": lambda m: ExceptionGroup(m, [ValueError()]),
           "unicode": lambda m: UnicodeDecodeError("utf-8", b"", 0, 1, m), "todo": NotImplementedError,
           "exit": SystemExit}[kind]("why")

def grad_mode():
    return torch.is_grad_enabled()

def draw(generator=None):
    return torch.rand(4, generator=generator)

def count(module):
    return sum(p.numel() for p in module.parameters())

def apply(function, x):
    return function(x)

def endless():
    while True:
        yield 1

Pair = collections.namedtuple("Pair", "a b")
pair = Pair(1, torch.ones(2))
module_of_torch = nn.Linear
def train(model, x):
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def link(sandbox):
    sources = {
        "matmul": "def matmul(x, y): ...",
        "Net": "class Net(nn.Module):\n def __init__(self, dim): ...\n def forward(self, x): ...",
    }
    link = Link(sandbox.worker(), sandbox.limits, sources)
    link.run(STUDENT, "<student>")
    link.allow(60)
    yield link
    link.close()


@pytest.fixture
def net(link):
    net = link.named("Net")(3)
    net.eval()
    return net


def test_a_call_is_told_with_the_names_of_its_arguments(link, net):
    square = torch.ones(2, 2)
    assert checks.describe_call(link.named("matmul"), [square, square]) == "x (2, 2) and y (2, 2)"
    assert checks.describe_call(link.named("Net"), [3]) == "dim 3"
    assert checks.describe_call(net, [square]) == "x (2, 2)"
    assert checks.describe_call(link.named("in_place"), [square]) == "argument (2, 2)", "not in the grader's copy"


def test_a_decorated_function_on_real_objects_has_the_names_of_its_arguments():
    @torch.no_grad()
    def search(model, source, beam):
        return model, source, beam

    assert checks.describe_call(search, [1, torch.ones(2), 3]) == "model 1, source (2,) and beam 3"


def test_a_class_on_real_objects_has_the_names_of_what_makes_it():
    class Net(torch.nn.Module):
        def __init__(self, dim):
            super().__init__()

        def forward(self, x): ...

    assert checks.describe_call(Net, [3]) == "dim 3"
    assert checks.describe_call(Net(3), [torch.ones(2)]) == "x (2,)"


def test_gradients_reach_the_arguments(link):
    x, y = torch.randn(2, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    out = link.named("matmul")(x, y * 2)
    weights = torch.randn(2, 4)
    mine = torch.autograd.grad((out * weights).sum(), [x, y])
    theirs = torch.autograd.grad(((x @ (y * 2)) * weights).sum(), [x, y])
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b)


def test_several_outputs_share_one_graph(link):
    x, y = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
    product, rest = link.named("both")(x, y)
    (product.sum() + 2 * rest["sum"].sum()).backward()
    torch.testing.assert_close(x.grad, y.detach() + 2)
    x.grad = None
    link.named("both")(x, y)[1]["sum"].sum().backward()
    torch.testing.assert_close(x.grad, torch.ones(3))


def test_gradcheck_holds(link):
    x, y = (torch.randn(2, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(link.named("matmul"), (x, y))


def test_an_argument_that_is_not_used_gets_no_gradient(link):
    x, y = torch.randn(2, requires_grad=True), torch.randn(2, requires_grad=True)
    product, _ = link.named("both")(x, y.detach())
    assert torch.autograd.grad(product.sum(), [x, y], allow_unused=True)[1] is None


def test_parameters_accumulate_gradients(net):
    x = torch.randn(4, 3)
    held = dict(net.named_parameters())["first.bias"]
    net(x).sum().backward()
    once = net.first.bias.grad.clone()
    assert held.grad is not None
    net(x).sum().backward()
    torch.testing.assert_close(held.grad, 2 * once)
    net.zero_grad()
    assert held.grad is None
    assert net.first.bias.grad is None


def test_a_backward_without_arguments_that_need_it(net):
    out = net(torch.randn(2, 3))
    assert out.requires_grad
    assert not out.is_leaf
    with torch.no_grad():
        assert not net(torch.randn(2, 3)).requires_grad


def test_grad_mode_crosses(link):
    assert link.named("grad_mode")() is True
    with torch.no_grad():
        assert link.named("grad_mode")() is False


def test_shared_weights_are_one_object(net):
    assert net.first.weight is net.second.weight
    assert net.first is net.layers[0]
    assert net.first is not net.second
    assert net.first.bias is not net.second.bias


def test_state_goes_in_and_out(net):
    state = {name: torch.randn_like(value) for name, value in net.first.state_dict().items()}
    net.first.load_state_dict(state)
    assert torch.equal(net.state_dict()["first.bias"], state["bias"])
    assert torch.equal(net.state_dict()["layers.1.weight"], state["weight"])
    with pytest.raises(RuntimeError):
        net.load_state_dict({})


def test_parameters_can_be_set_and_trained_here(net):
    with torch.no_grad():
        for parameter in net.parameters():
            nn.init.constant_(parameter, 0.5)
    assert torch.equal(net.first(torch.ones(1, 3)), torch.full((1, 3), 2.0))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    net(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    assert net.second.bias.grad is None
    assert torch.equal(net.state_dict()["second.bias"], torch.zeros(3))


def test_training_in_the_worker_is_seen(link, net):
    parameter = next(net.parameters())
    before = parameter.detach().clone()
    link.named("train")(net, torch.randn(8, 3))
    assert parameter.grad is not None
    assert not torch.equal(next(net.parameters()), before)


def test_what_a_check_lets_go_of_is_let_go_of(link, net):
    """Whatever the number of references that this Python counts."""
    gc.collect()  # what tests before this one left in cycles
    held = dict(net.named_parameters())
    kept = held["first.bias"]
    known = set(link._parameters)
    assert len(known) == len(held)
    del held
    for _ in range(2):
        assert net.calls == 0
    assert set(link._parameters) < known
    (left,) = link._parameters.values()
    assert left is kept


def test_it_looks_like_what_it_is(link, net):
    assert type(net) is Remote
    assert isinstance(net, nn.Module)
    assert isinstance(net.first, nn.Linear)
    assert not isinstance(net.first, nn.Conv1d)
    assert isinstance(net.layers, nn.ModuleList)
    assert isinstance(link.named("Net"), type)
    assert callable(link.named("matmul"))
    assert not isinstance(net, torch.Tensor)
    assert repr(net) == "<the student's Net>"
    assert hasattr(net, "first")
    assert not hasattr(net, "third")


def test_attributes_are_read_and_set(net):
    assert net.training is False
    assert net.calls == 0
    net.calls = 7
    net(torch.ones(1, 3))
    assert net.calls == 8
    net.train()
    assert net.training is True
    assert net.dropout.training is True
    with pytest.raises(AttributeError):
        _ = net.missing


def test_containers(link, net):
    assert len(net.layers) == 2
    assert [type(layer) for layer in net.layers] == [Remote, Remote]
    assert len(list(net.parameters())) == 3
    assert next(net.parameters()) is net.first.weight
    assert net.first in net.layers
    a, b = link.named("pair")
    assert a == 1
    assert torch.equal(b, torch.ones(2))
    with pytest.raises(ValueError, match="more than 100 items"):
        list(link.named("endless")())


def test_copies(net):
    twin = copy.deepcopy(net)
    assert twin is not net
    assert twin.first.weight is not net.first.weight
    assert torch.equal(twin.first.weight, net.first.weight)


def test_changes_in_place_are_told_and_never_made(link):
    x = torch.zeros(3)
    with proxy.watch_changes() as changes:
        out = link.named("in_place")(x)
    assert out is not x
    assert torch.equal(out, torch.ones(3))
    assert torch.equal(x, torch.zeros(3))
    ((tensor, values),) = changes
    assert tensor is x
    assert torch.equal(values, torch.ones(3))
    assert torch.equal(checks.changed_in_place(link.named("in_place"), x), torch.ones(3))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        link.named("in_place")(torch.zeros(3, requires_grad=True))
    y = torch.zeros(3, requires_grad=True) * 2
    link.named("in_place")(y)
    assert torch.equal(y, torch.zeros(3))


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_a_change_of_a_part_is_a_change(link, part):
    x = torch.zeros(3)
    with pytest.raises(AssertionError, match="the input that was changed is `x`"), checks.unchanged(x=x):
        link.named("in_place")(x[part])
    with checks.unchanged(x=x):
        link.named("in_place")(x.clone())
        link.named("same")(x)


def test_no_change_reaches_what_the_grader_holds(link):
    """Weights, inputs, masks, generators: whatever is handed over stays as the check made it."""
    spoil = proxy.place(
        """def spoil(tensors, generator):
    for tensor in tensors:
        tensor.requires_grad_(False)
        tensor.resize_(0) if tensor.dtype == torch.bool else tensor.fill_(7)
    torch.rand(5, generator=generator)
    return tensors
""",
        "spoil",
        beside=link.named("matmul"),
    )
    given = [torch.randn(3, dtype=torch.float64), torch.ones(2, 2, dtype=torch.bool), torch.arange(4), torch.randn(2)]
    given[3].requires_grad_()
    before, generator = [tensor.detach().clone() for tensor in given], torch.Generator().manual_seed(1)
    answer = spoil(given, generator)
    assert torch.equal(answer[0], torch.full((3,), 7.0, dtype=torch.float64))  # it did what it is meant to
    assert answer[1].numel() == 0
    for tensor, right in zip(given, before, strict=True):
        assert tensor.shape == right.shape
        assert torch.equal(tensor, right)
    assert given[3].requires_grad
    alike = torch.Generator().manual_seed(1)
    link.named("same")(alike)  # draws nothing
    assert torch.equal(generator.get_state(), alike.get_state())


def test_an_argument_that_is_returned_is_the_argument(link):
    x = torch.randn(2, requires_grad=True)
    assert link.named("same")(x) is x


def test_objects_of_torch_can_be_handed_over(link):
    assert link.named("count")(nn.Linear(3, 4)) == 16
    assert link.named("count")(nn.TransformerEncoderLayer(8, 2, 16)) == sum(
        p.numel() for p in nn.TransformerEncoderLayer(8, 2, 16).parameters()
    )
    x = torch.randn(3)
    assert torch.equal(link.named("apply")(torch.relu, x), x.relu())
    layer = nn.Linear(3, 3)
    assert torch.equal(link.named("apply")(layer, x), layer(x))
    with pytest.raises(TypeError, match="place"):
        link.named("apply")(lambda x: x, x)


def test_helpers_are_placed(link):
    helper = proxy.place("def thrice(x: Anything):\n    return 3 * x\n", "thrice", beside=link.named("apply"))
    assert torch.equal(link.named("apply")(helper, torch.ones(2)), torch.full((2,), 3.0))


@pytest.mark.parametrize(
    "kind, error",
    [
        ("value", ValueError),
        ("mine", ValueError),
        ("key", KeyError),
        ("group", Exception),
        ("unicode", UnicodeError),
        ("todo", NotImplementedError),
        ("exit", RuntimeError),
    ],
)
def test_exceptions_cross_as_built_in_ones(link, kind, error):
    with pytest.raises(error) as caught:
        link.named("raises")(kind)
    assert "why" in str(caught.value)
    assert "in raises" in caught.value.student_traceback
    assert "worker.py" not in caught.value.student_traceback
    if kind == "mine":
        assert caught.value.student_type == "Mine"


def test_random_numbers(link):
    draw = link.named("draw")
    generator = torch.Generator().manual_seed(3)
    first, second = draw(generator), draw(generator=generator)
    again = torch.Generator().manual_seed(3)
    assert torch.equal(first, torch.rand(4, generator=again))
    assert torch.equal(second, torch.rand(4, generator=again))
    assert torch.equal(draw(generator.manual_seed(3)), first)
    other = torch.Generator().manual_seed(3)
    assert torch.equal(draw(other), first)
    proxy.seed(5, beside=draw)
    once = draw()
    proxy.seed(5, beside=draw)
    assert torch.equal(draw(), once)


def test_calls_are_recorded(link):
    names = proxy.record_calls(link.named("matmul"), [torch.ones(2, 2), torch.ones(2, 2)])
    assert names == ["matmul@cpu"]


def test_calls_are_recorded_alike_on_both_sides(link):
    args = [torch.ones(2, 2, device="meta"), torch.ones(2, 2, device="meta")]
    recorded = proxy.record_calls(link.named("matmul"), args)
    assert recorded == protocol.record_calls(lambda x, y: x @ y, args, {})
    assert recorded == ["matmul@meta"]


def test_what_is_computed_behind_the_recorders_back_is_recorded():
    def hidden(x):
        with torch._C.DisableTorchFunction():
            return x.softmax(-1)

    assert protocol.record_calls(hidden, [torch.ones(2, 2)], {}) == ["_softmax.default@cpu"]
    assert protocol.record_calls(lambda x: x.softmax(-1), [torch.ones(2, 2)], {}) == ["softmax@cpu"]
    for called in (hidden, lambda x: torch.ops.aten._softmax.default(x, -1, False), lambda x: x.softmax(-1)):
        with pytest.raises(AssertionError):
            checks.expect_not_calling(called, [torch.ones(2, 2)], {"softmax"}, Common.LOOP)


def test_the_source_is_the_graders_own(link):
    assert proxy.source_of(link.named("matmul")) == "def matmul(x, y): ..."
    with pytest.raises(LookupError):
        proxy.source_of(link.named("Net")(2))


def test_nothing_that_is_no_data_can_be_compared_or_computed_with(link):
    net = link.named("Net")
    assert (net == 3) is False
    assert net == link.named("Net")
    for attempt in (lambda: net + 1, lambda: net < 1, lambda: float(net), lambda: torch.allclose(net, torch.ones(1))):
        with pytest.raises(TypeError):
            attempt()


def test_meta_tensors_cross(link):
    out = link.named("matmul")(torch.ones(2, 3, device="meta"), torch.ones(3, 4, device="meta"))
    assert out.device.type == "meta"
    assert out.shape == (2, 4)


def test_what_is_dropped_here_is_dropped_there(link):
    probe = """
import sys
def probe():
    frame = sys._getframe()
    while not hasattr(frame.f_locals.get("self"), "graphs"):
        frame = frame.f_back
    return len(frame.f_locals["self"].objects), len(frame.f_locals["self"].graphs)
"""
    held = proxy.place(probe, "probe", beside=link.named("matmul"))
    held()
    before = held()
    for _ in range(20):
        net = link.named("Net")(3)
        net(torch.ones(1, 3)).sum().backward()
        list(net.parameters())
        del net
    after = held()
    assert after[0] <= before[0] + 12
    assert after[1] <= before[1] + 2
