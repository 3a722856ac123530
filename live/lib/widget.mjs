// Added to a figure's bundle in a notebook: what anywidget calls. The model, if the figure needs one, comes from the kernel.

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
    figure.render(el, { ...tensors.unpackData(model.get("data")), loadModel });
  },
};
