// Brokers by racks as a heat map: one tile a broker, shaded by what the reader chooses.

import { counted, h, number, show, span } from "./dom.js";
import { BROKER_STATES } from "./words.js";

/** What tiles are shaded by: a count of a broker's `partitions`, its name, and whether many of it are bad. */
const MEASURES = [
  ["leaders", "Leaders", "calm"],
  ["replicas", "Replicas", "calm"],
  ["offline_replicas", "Offline replicas", "bad"],
  ["offline", "Without a leader", "bad"],
  ["under_replicated", "Under-replicated", "bad"],
];
/** Those that brokers of a rack have no two of one: a partition without a leader may have replicas on several. */
const SUMMED = new Set(["leaders", "replicas", "offline_replicas"]);
/** Shades of a tile, beside that of nothing; page.css has as many. */
const SHADES = 5;
/** From so many brokers on tiles show their number alone. */
const DENSE = 240;
/** Characters of a number that a tile has room for; longer ones are written smaller. */
const LONG = 8;

let chosen = MEASURES[0];
let drawn = null;

/** Let the reader choose what tiles are shaded by. */
export function startRacks() {
  const choices = MEASURES.map((measure) => {
    const input = h("input", { type: "radio", name: "measure", value: measure[0], checked: measure === chosen });
    input.addEventListener("change", () => {
      chosen = measure;
      if (drawn) showRacks(drawn);
    });
    return h("label", {}, input, h("span", {}, measure[1]));
  });
  document.getElementById("measures").append(...choices);
}

/** Draw the brokers of a status. */
export function showRacks(status) {
  drawn = status;
  const place = document.getElementById("racks");
  const { brokers } = status;
  if (!brokers.length) {
    show(place, h("p", { class: "empty" }, "No broker has registered yet."));
    return;
  }
  const most = Math.max(...brokers.map((broker) => broker.partitions[chosen[0]]));
  const racks = [...Map.groupBy(brokers, (broker) => broker.rack ?? "")].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  const dense = brokers.length >= DENSE;
  show(
    place,
    h("div", { class: dense ? "rack-rows dense" : "rack-rows" }, racks.map(([rack, held]) => rackRow(rack, held, most))),
    legend(most),
  );
}

function rackRow(rack, brokers, most) {
  const [name, words] = chosen;
  const sum = brokers.reduce((total, broker) => total + broker.partitions[name], 0);
  const away = brokers.filter((broker) => broker.state !== "active").length;
  return h(
    "section",
    { class: "rack", "data-key": rack },
    h(
      "h3",
      {},
      rack ? h("span", {}, h("span", { class: "quiet" }, "rack "), rack) : h("span", { class: "quiet" }, "no rack"),
      h("span", { class: "quiet small" }, `${counted(brokers.length, "broker")}${away ? `, ${number(away)} away` : ""}${SUMMED.has(name) ? ` · ${number(sum)} ${words.toLowerCase()}` : ""}`),
    ),
    h("ul", { class: "tiles" }, brokers.map((broker) => tile(broker, most))),
  );
}

function tile(broker, most) {
  const value = broker.partitions[chosen[0]];
  const state = BROKER_STATES[broker.state];
  const beat = broker.last_heartbeat_ms === null ? "" : `, heard of ${span(broker.last_heartbeat_ms)} ago`;
  const label = `broker ${broker.id}${state && `, ${state}`}: ${MEASURES.map(([name, words]) => `${number(broker.partitions[name])} ${words.toLowerCase()}`).join(", ")}`;
  return h(
    "li",
    { "data-key": broker.id },
    h(
      "button",
      {
        type: "button",
        class: `tile ${chosen[2]} shade-${value ? Math.max(1, Math.ceil((value / most) * SHADES)) : 0} ${broker.state}`,
        "data-explain": `broker=${broker.id}`,
        title: label + beat,
      },
      // Its name is all that is known of it, whatever the tile has room for.
      h("span", { class: "unseen" }, label),
      h("span", { class: "tile-id", "aria-hidden": "true" }, broker.id),
      h("span", { class: number(value).length > LONG ? "tile-value long" : "tile-value", "aria-hidden": "true" }, number(value)),
      state && h("span", { class: "tile-state", "aria-hidden": "true" }, state),
    ),
  );
}

function legend(most) {
  const steps = Array.from({ length: SHADES + 1 }, (_, step) => h("span", { class: `swatch ${chosen[2]} shade-${step}` }));
  return h(
    "p",
    { class: "legend", "aria-hidden": "true" },
    h("span", {}, `${chosen[1]}: ${most ? 0 : "none"}`),
    most > 0 && [h("span", { class: "swatches" }, steps), h("span", {}, number(most))],
    h("span", { class: "legend-state" }, h("span", { class: "swatch fenced" }), "fenced or shutting down"),
  );
}
