// The moment that the page shows: null is now, anything else what goes into `at=` of every question.

const changes = new EventTarget();
let shown = null;

/** The moment as `at=` has it, or null. */
export function moment() {
  return shown;
}

/** Show another moment; whoever listens by `onMoment` asks anew. */
export function setMoment(at) {
  if (at === shown) return;
  shown = at;
  changes.dispatchEvent(new Event("moment"));
}

/** Have a function called when another moment is to be shown. */
export function onMoment(listener) {
  changes.addEventListener("moment", listener);
}
