"""What a deep stack does to the numbers that go through it: chapter 06's table, by layer, initial weights and way."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

STARTS: dict[str, Callable | None] = {
    "torch's default": None,
    "Xavier": nn.init.xavier_uniform_,
    "He": lambda weight: nn.init.kaiming_normal_(weight, nonlinearity="relu"),
}
DEPTHS = (1, 2, 5, 10, 20, 50, 100)
GRADIENT, SPREAD = 0, 1  # the table's two columns
SEEDS = 4

PLACES = {  # of the residual connection and the norm, as the live figure says it
    "alone": ("without", "none"),
    "norm": ("without", "after"),
    "residual": ("with", "none"),
    "tenth": ("with a tenth of f", "none"),
    "post-norm": ("with", "after the sum (post-norm)"),
    "pre-norm": ("with", "before f (pre-norm)"),
}
LOOKS = {  # lines that differ in grey too, and that can lie on each other and be seen
    "alone": {"color": "0.6", "linestyle": ":", "marker": "D", "markersize": 10, "markerfacecolor": "none"},
    "norm": {"color": "#d95f0e", "linestyle": "--", "marker": "s"},
    "residual": {"color": "#41ab5d", "linestyle": "-.", "marker": "^"},
    "tenth": {"color": "#6a51a3", "linestyle": (0, (6, 1, 1, 1, 1, 1)), "marker": "v"},
    "post-norm": {"color": "#a50f15", "linestyle": (0, (1, 1)), "marker": "X"},
    "pre-norm": {"color": "#08306b", "linestyle": "-", "marker": "o"},
}


def draw(module: nn.Module, start: Callable | None) -> nn.Module:
    """Draw the matrices of a module anew; None leaves them as torch made them."""
    for parameter in module.parameters():
        if start and parameter.dim() == 2:
            start(parameter)
    return module


def write_short(number: float, digits: str) -> str:
    """A number as the tables write it."""
    return f"{number:.{digits}}" if abs(number) < torch.inf else "overflow"


@dataclass
class Table:
    """Gradient and spread by depth; a row is a layer, its initial weights, and a way from one x to the next.

    Attributes:
        go_through: what measures one row with one seed: `(layers, way, seed)` to a tensor `(depths, 2)`.
        ways: by name, what leads from one x to the next: `(layer, x)` to the next x.
        rows: what was measured, by row: `(seeds, depths, 2)`.
    """

    go_through: Callable[[list[nn.Module], Callable, int], Tensor]
    ways: dict[str, Callable]
    rows: dict[tuple[str, str, str], Tensor] = field(default_factory=dict)

    def measure(self, kind: str, make: Callable[[int], nn.Module], starts: Iterable[str], ways: Sequence[str]) -> None:
        """Add rows of a hundred layers; the ways share their layers, so that they differ in nothing else."""
        for start in starts:
            runs: dict[str, list[Tensor]] = {way: [] for way in ways}
            for seed in range(SEEDS):
                torch.manual_seed(seed)
                layers = [draw(make(number), STARTS[start]) for number in range(max(DEPTHS))]
                for way in ways:
                    runs[way].append(self.go_through(layers, self.ways[way], seed))
            self.rows.update({(kind, start, way): torch.stack(runs[way]) for way in ways})

    def typical(self, row: tuple[str, str, str], column: int | slice) -> Tensor:
        """The middle of the four seeds, by depth."""
        return self.rows[row][..., column].quantile(0.5, dim=0)

    def print_by_depth(self, rows: Iterable[tuple[str, str, str]], column: int) -> None:
        """Print rows, from one layer to a hundred."""
        print(f"{'layers':>36}", *(f"{depth:8}" for depth in DEPTHS))
        for row in rows:
            numbers = (f"{number:8.2g}" for number in self.typical(row, column).tolist())
            print(f"{', '.join(row):>36}", *numbers)

    def stacks(self) -> list[tuple[str, str]]:
        """What was stacked, with which initial weights."""
        return list(dict.fromkeys((kind, start) for kind, start, _ in self.rows))

    def print_ends(self, ways: Sequence[str]) -> None:
        """Print where each stack ends after a hundred layers, in each of the ways."""
        for column, name, digits in ((GRADIENT, "gradient at the input", "2g"), (SPREAD, "spread", "2f")):
            print(f"{name + ', 100 layers':>32}", *(f"{way:>9}" for way in ways))
            for stack in self.stacks():
                ends = (self.typical((*stack, way), column)[-1].item() for way in ways)
                print(f"{', '.join(stack):>32}", *(f"{write_short(end, digits):>9}" for end in ends))

    def print_extremes(self, ways: Sequence[str], sound: Callable[[Tensor, Tensor], Tensor]) -> None:
        """Print the least and the largest of all stacks and seeds after a hundred layers, and how many are sound."""
        print(f"{'':9} gradient at the input  spread       sound")
        for way in ways:
            ends = torch.cat([self.rows[*stack, way][:, -1] for stack in self.stacks()])
            gradient, spread = ends.nan_to_num(torch.inf).unbind(dim=-1)
            least, most = (write_short(v.item(), "2g") for v in (gradient.min(), gradient.max()))
            print(f"{way:>9} {least:>8} – {most:8} {spread.min():.2f} – {spread.max():.2f}", end="")
            print(f" {sound(gradient, spread).sum():4} of {len(ends)}")

    def cases(self, ways: Sequence[str]) -> list[dict]:
        """The rows as the live figure wants them."""
        return [
            {
                "layers": kind,
                "initialisation": start,
                "residual": PLACES[way][0],
                "norm": PLACES[way][1],
                "gradients": self.typical((kind, start, way), GRADIENT).nan_to_num(1e38).clamp(max=1e38),
                "spreads": self.typical((kind, start, way), SPREAD),
            }
            for kind, start in self.stacks()
            for way in ways
        ]
