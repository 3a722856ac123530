// What all figures are built of: elements, labelled controls, cells whose colour is a weight. Text is only ever set as text,
// so nothing that a reader types is read as markup.

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set([
  "svg",
  "g",
  "rect",
  "circle",
  "line",
  "path",
  "polygon",
  "polyline",
  "text",
  "title",
  "tspan",
]);

/**
 * Make an element.
 *
 * @param {string} tag - of HTML or of SVG.
 * @param {object} attributes - by name; `onclick` and the like are functions; false and null are left out.
 * @param {...(Node|string|number)} children - strings become text.
 */
export function h(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined)
      element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A slider with its name and its value: `{row, input}`. `tell` turns the number into what is shown. */
export function slider(name, { min, max, step, value }, tell, onchange) {
  const shown = h("output", {}, tell(value));
  const input = h("input", { type: "range", min, max, step, value, "aria-valuetext": tell(value) });
  input.addEventListener("input", () => {
    shown.textContent = tell(input.valueAsNumber);
    input.setAttribute("aria-valuetext", shown.textContent);
    onchange(input.valueAsNumber);
  });
  return { row: h("label", { class: "live-slider" }, h("span", {}, name), input, shown), input };
}

/** A menu with its name: `{row, input}`. `options` are texts; `onchange` gets the number of the chosen one. */
export function menu(name, options, chosen, onchange) {
  const input = h(
    "select",
    { onchange: () => onchange(input.selectedIndex) },
    options.map((text) => h("option", {}, text)),
  );
  input.selectedIndex = chosen;
  return { row: h("label", { class: "live-menu" }, h("span", {}, name), input), input };
}

/** A box to tick: `{row, input}`. */
export function tick(name, checked, onchange) {
  const input = h("input", { type: "checkbox", onchange: () => onchange(input.checked) });
  input.checked = checked;
  return { row: h("label", { class: "live-tick" }, input, h("span", {}, name)), input };
}

/** A button. */
export function button(name, onclick, attributes = {}) {
  return h("button", { type: "button", onclick, ...attributes }, name);
}

/** The style of a cell that stands for a weight from 0 to 1. */
export function heat(weight) {
  const percent = (100 * Math.min(Math.max(weight, 0), 1)).toFixed(1);
  return `background: color-mix(in srgb, var(--live-heat) ${percent}%, var(--live-paper))`;
}

/** The same for an SVG shape. */
export function fill(weight) {
  return heat(weight).replace("background", "fill");
}

/** A weight as a reader wants it: "37 %". */
export function percent(weight) {
  return `${Math.round(100 * weight)} %`;
}

/** A number with a sign that can be read, and a fixed count of digits. */
export function number(value, digits = 2) {
  return value
    .toFixed(digits)
    .replace("-", "−")
    .replace(/^−(0(\.0+)?)$/, "$1");
}

/**
 * A table of weights with words on its axes.
 *
 * @param {string} caption - what it shows, for all readers.
 * @param {string[]} rows - a label for each row.
 * @param {string[]} columns - a label for each column.
 * @param {number[][]} weights - `(rows, columns)`, 0 to 1.
 * @param {?function(number, number): object} attributes - further attributes of a cell.
 */
export function weightTable(caption, rows, columns, weights, attributes = () => ({})) {
  const head = h(
    "tr",
    {},
    h("td"),
    columns.map((word) => h("th", { scope: "col" }, h("span", {}, word))),
  );
  const body = rows.map((word, i) => {
    const cells = weights[i].map((weight, j) => {
      const text = weight >= 0.005 ? Math.round(100 * weight) : "";
      return h("td", { style: heat(weight), ...attributes(i, j) }, text);
    });
    return h("tr", {}, h("th", { scope: "row" }, word), cells);
  });
  const table = h(
    "table",
    { class: "live-weights", style: labelRoom(columns) },
    h("caption", {}, caption),
    h("thead", {}, head),
    h("tbody", {}, body),
  );
  return h("div", { class: "live-scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
}

/** The height that slanted words need above their columns, as a style. */
export function labelRoom(words) {
  return `--label: ${(1.4 + 0.42 * Math.max(...words.map((word) => word.length))).toFixed(1)}em`;
}

/** What a list of buttons needs so that the arrow keys move along it. */
export function arrowKeys(container) {
  container.addEventListener("keydown", (event) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!way || !event.target.matches("button")) return;
    const buttons = [...container.querySelectorAll("button")];
    const next = buttons[buttons.indexOf(event.target) + way];
    if (next) next.focus();
    event.preventDefault();
  });
  return container;
}

/** A subword as it is shown: without the mark of the space before it. */
export function pieceText(piece) {
  return piece.replace(/^▁/, "") || "␣";
}
