/* Search by kernel, family and size: what matches stands out on the map, the first of it is listed. */

class Search {
  static LISTED = 40;

  /* matched(Uint8Array or null): what to let stand out. choose(i): a nest of the list. */
  constructor(input, list, matched, choose, styleOf) {
    [this.input, this.list] = [input, list];
    [this.matched, this.choose, this.styleOf] = [matched, choose, styleOf];
    this.texts = nests.map((nest) => `${nest.kernel} ${nest.family} ${nest.sizes}`.toLowerCase());
    input.addEventListener("input", () => this.find());
    input.addEventListener("focus", () => this.find());
    input.addEventListener("keydown", (event) => this.key(event));
    list.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("pointerdown", (event) => {
      if (!input.parentElement.contains(event.target)) list.hidden = true;
    });
  }

  find() {
    const words = this.input.value.toLowerCase().split(/\s+/).filter((word) => word);
    if (!words.length) {
      this.list.hidden = true;
      this.matched(null);
      return;
    }
    const mask = Uint8Array.from(this.texts, (text) => (words.every((word) => text.includes(word)) ? 1 : 0));
    const found = nests.filter((nest) => mask[nest.index]);
    this.matched(mask);
    const shown = found.slice(0, Search.LISTED).map((nest) =>
      element(
        "button",
        { type: "button", onclick: () => this.take(nest.index) },
        markIcon(this.styleOf(nest.index)),
        element("span", {}, nest.kernel),
        element("small", {}, `${nest.family} · ${nest.sizes}`),
      ),
    );
    const left = found.length - shown.length;
    const note = left > 0 ? `and ${left.toLocaleString("en")} more` : found.length ? "" : "Nothing matches";
    this.list.replaceChildren(...shown, ...(note ? [element("p", {}, note)] : []));
    this.list.hidden = false;
  }

  take(i) {
    this.list.hidden = true;
    this.choose(i);
  }

  clear() {
    this.input.value = "";
    this.find();
  }

  key(event) {
    const buttons = [...this.list.querySelectorAll("button")];
    const place = buttons.indexOf(document.activeElement);
    if (event.key === "Escape") {
      this.clear();
      this.input.focus();
    } else if (event.key === "Enter" && event.target === this.input && buttons.length) {
      buttons[0].click();
    } else if (event.key === "ArrowDown" && place + 1 < buttons.length) {
      buttons[place + 1].focus();
    } else if (event.key === "ArrowUp" && place >= 0) {
      (buttons[place - 1] ?? this.input).focus();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}
