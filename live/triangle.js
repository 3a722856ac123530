// Chapter 01: a weighted average of three points lies in their triangle, wherever the weights put it.

import { h, number, slider, tick } from "./lib/dom.js";

const [WIDTH, HEIGHT] = [420, 300];
const [SIDE, EDGE] = [64, 34]; // free room beside the points, for their names, and above and below

/**
 * @param {HTMLElement} element - where to.
 * @param {{points: ?number[][], labels: ?string[], weights: ?number[]}} data - three points (3, 2), their names, their weights.
 */
export function render(element, data) {
  const points = (
    data.points ?? [
      [0, 0],
      [4, 0.5],
      [1.5, 3],
    ]
  ).map((point) => [...point]);
  const labels = data.labels ?? ["x₀", "x₁", "x₂"];
  let weights = normal(data.weights ?? [1, 1, 1]);
  let free = false;

  const low = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])));
  const high = [0, 1].map((axis) => Math.max(...points.map((point) => point[axis])));
  const scale = Math.min((WIDTH - 2 * SIDE) / (high[0] - low[0] || 1), (HEIGHT - 2 * EDGE) / (high[1] - low[1] || 1));
  const centre = [0, 1].map((axis) => (low[axis] + high[axis]) / 2);
  const toPage = ([x, y]) => [WIDTH / 2 + (x - centre[0]) * scale, HEIGHT / 2 - (y - centre[1]) * scale];
  const fromPage = ([x, y]) => [centre[0] + (x - WIDTH / 2) / scale, centre[1] - (y - HEIGHT / 2) / scale];

  const sides = h("polygon", { class: "sides" });
  const spokes = points.map(() => h("line", { class: "spoke" }));
  const corners = points.map((_, k) =>
    handle(`point ${labels[k]}`, "corner", (place) => {
      points[k] = place;
    }),
  );
  const middle = handle("the average y", "middle", (place) => {
    if (!free) weights = barycentric(place, points);
  });
  const names = [...labels, "y"].map((label) => h("text", { "aria-hidden": "true" }, label));
  const drawing = h(
    "svg",
    {
      class: "live-triangle",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "group",
      "aria-label": "Three points, their triangle and their weighted average y",
    },
    sides,
    spokes,
    corners,
    middle,
    names,
  );
  const formula = h("p", { class: "live-formula", "aria-live": "polite" });
  const sliders = labels.map((label, k) =>
    slider(
      `Weight of ${label}`,
      { min: -1, max: 2, step: 0.01, value: weights[k] },
      (v) => number(v),
      (v) => {
        setWeight(k, v);
        draw();
      },
    ),
  );
  element.append(
    drawing,
    h(
      "div",
      { class: "live-controls" },
      sliders.map((one) => one.row),
    ),
    tick("Break the rules: let weights be negative and sum to anything", false, (checked) => {
      free = checked;
      if (!free) weights = normal(weights.map((w) => Math.max(w, 0)));
      draw();
    }).row,
    formula,
    h("p", { class: "live-key" }, "Drag y or a corner, or move them with Tab and the arrow keys."),
  );
  draw();

  function setWeight(k, value) {
    if (free) {
      weights[k] = value;
      return;
    }
    const others = weights.reduce((sum, w, i) => (i === k ? sum : sum + w), 0);
    const mine = Math.min(Math.max(value, 0), 1);
    weights = weights.map((w, i) => (i === k ? mine : others > 0 ? (w / others) * (1 - mine) : (1 - mine) / 2));
  }

  /** A dot that the mouse, a finger and the arrow keys move. */
  function handle(name, kind, move) {
    const dot = h("circle", {
      class: kind,
      r: kind === "middle" ? 10 : 8,
      tabindex: 0,
      role: "slider",
      "aria-label": name,
      "aria-valuenow": 0,
    });
    const go = (place) => {
      move(place);
      draw();
    };
    dot.addEventListener("pointerdown", (event) => {
      dot.setPointerCapture(event.pointerId);
      event.preventDefault();
      dot.focus();
    });
    dot.addEventListener("pointermove", (event) => {
      if (!dot.hasPointerCapture(event.pointerId)) return;
      const box = drawing.getBoundingClientRect();
      go(
        fromPage([((event.clientX - box.left) / box.width) * WIDTH, ((event.clientY - box.top) / box.height) * HEIGHT]),
      );
    });
    dot.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-6, 0], ArrowRight: [6, 0], ArrowUp: [0, -6], ArrowDown: [0, 6] }[event.key];
      if (!way) return;
      event.preventDefault();
      go(fromPage([Number(dot.getAttribute("cx")) + way[0], Number(dot.getAttribute("cy")) + way[1]]));
    });
    return dot;
  }

  function draw() {
    const y = [0, 1].map((axis) => points.reduce((sum, point, k) => sum + weights[k] * point[axis], 0));
    const places = points.map(toPage);
    const at = toPage(y);
    sides.setAttribute("points", places.map((place) => place.join(",")).join(" "));
    [...places, at].forEach(([x, top], k) => {
      const dot = [...corners, middle][k];
      const [a, b] = k < 3 ? points[k] : y;
      for (const [name, value] of [
        ["cx", x],
        ["cy", top],
        ["aria-valuenow", a.toFixed(2)],
        ["aria-valuetext", `(${number(a, 1)}, ${number(b, 1)})`],
      ])
        dot.setAttribute(name, value);
      const room = 12 + 10 * names[k].textContent.length;
      const left = x + room > WIDTH || (k < 3 && x < WIDTH / 2 && x > room); // a corner's name stands outside the triangle
      names[k].setAttribute("x", left ? x - 12 : x + 12);
      names[k].setAttribute("y", k < 3 && top > HEIGHT / 2 ? top + 20 : top - 10);
      names[k].setAttribute("text-anchor", left ? "end" : "start");
    });
    spokes.forEach((spoke, k) => {
      const ends = {
        x1: at[0],
        y1: at[1],
        x2: places[k][0],
        y2: places[k][1],
        "stroke-width": (1 + 7 * Math.abs(weights[k])).toFixed(1),
      };
      for (const [name, value] of Object.entries(ends)) spoke.setAttribute(name, value);
    });
    sliders.forEach(({ input, row }, k) => {
      input.min = free ? -1 : 0;
      input.max = free ? 2 : 1;
      input.value = weights[k];
      input.setAttribute("aria-valuetext", number(weights[k]));
      row.querySelector("output").textContent = number(weights[k]);
    });
    const sum = weights.reduce((a, b) => a + b, 0);
    const inside = weights.every((w) => w > -1e-9) && Math.abs(sum - 1) < 1e-6;
    formula.textContent =
      `y = ${weights.map((w, k) => `${number(w)} ${labels[k]}`).join(" + ")} = (${number(y[0], 1)}, ${number(y[1], 1)}). ` +
      (inside
        ? "The weights sum to 1 and none is negative: y is inside."
        : `The weights sum to ${number(sum)}${weights.some((w) => w < 0) ? ", one is negative" : ""}: y may be anywhere.`);
  }
}

function normal(weights) {
  const sum = weights.reduce((a, b) => a + b, 0);
  return sum > 0 ? weights.map((w) => w / sum) : weights.map(() => 1 / weights.length);
}

/** The weights that put y at a place; outside the triangle, those of a place on its edge. */
function barycentric([x, y], [[ax, ay], [bx, by], [cx, cy]]) {
  const area = (bx - ax) * (cy - ay) - (cx - ax) * (by - ay);
  if (Math.abs(area) < 1e-9) return [1 / 3, 1 / 3, 1 / 3];
  const b = ((x - ax) * (cy - ay) - (cx - ax) * (y - ay)) / area;
  const c = ((bx - ax) * (y - ay) - (x - ax) * (by - ay)) / area;
  return normal([1 - b - c, b, c].map((w) => Math.max(w, 0)));
}
