// Added to a figure's bundle in a notebook: what anywidget calls. The model, if the figure needs one, comes from the kernel.

/** Hide the picture that stands for the figure, in the output before it, as soon as the figure is in the page. */
function hidePicture(el, tries) {
  const before = el.closest(".jp-OutputArea-child")?.previousElementSibling;
  if (before) before.style.display = "none";
  else if (tries > 0) setTimeout(() => hidePicture(el, tries - 1), 100);
}

export default {
  render({ model, el }) {
    const loadModel = () =>
      new Promise((resolve) => {
        model.on("msg:custom", (message, buffers) => {
          if (message.kind !== "model") return;
          const { buffer, byteOffset, byteLength } = buffers[0];
          resolve(new Uint8Array(buffer, byteOffset, byteLength));
        });
        model.send({ kind: "model" });
      });
    el.classList.add("live");
    el.setAttribute("role", "group");
    el.setAttribute("aria-label", model.get("alt"));
    // JupyterLab's own shortcuts of one key (an arrow folds a section) would take the keys that move a slider.
    el.addEventListener("keydown", (event) => {
      if (!event.ctrlKey && !event.metaKey && event.key !== "Escape") event.stopPropagation();
    });
    hidePicture(el, 30);
    figure.render(el, { ...tensors.unpackData(model.get("data")), loadModel });
  },
};
