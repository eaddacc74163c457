// Elements, and times as text. Text reaches the page only through text nodes and attributes, never as markup.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Creates an element. Properties that begin with `on` are listeners; `class`, `aria-…` and others are attributes;
 * a value of false, null or undefined leaves the attribute out.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any>} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' && 'value' in element) /** @type {any} */ (element).value = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/** @param {(Child | Child[])[]} children @returns {(Node | string)[]} */
function nodes(children) {
  return children
    .flat()
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

/** Replaces the content of an element. @param {Element} element @param {...(Child | Child[])} children */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/**
 * Sets a text only if it differs: an unchanged row costs nothing.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The service's clock minus the browser's, in milliseconds. */
let skewMs = 0;
/** @param {string} serviceTime */
export function setClock(serviceTime) {
  const skew = Date.parse(serviceTime) - Date.now();
  // Small differences are the time that the response took.
  skewMs = Math.abs(skew) > 2000 ? skew : 0;
}
/** Now, by the service's clock. */
export const now = () => Date.now() + skewMs;

const MINUTE = 60_000,
  HOUR = 60 * MINUTE,
  DAY = 24 * HOUR;

/** A span of time as text with its two largest units. @param {number} ms */
export function span(ms) {
  const s = Math.round(Math.abs(ms) / 1000);
  if (s < 60) return `${s} s`;
  if (s < 600) return s % 60 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${s / 60} min`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  const m = Math.floor(s / 60);
  if (m < 1440) return m % 60 ? `${Math.floor(m / 60)} h ${m % 60} min` : `${m / 60} h`;
  const hours = Math.floor(m / 60);
  return hours % 24 ? `${Math.floor(hours / 24)} d ${hours % 24} h` : `${hours / 24} d`;
}

/** A time relative to now: `in 4 min 10 s`, `3 h ago`. @param {number} at */
export function relative(at) {
  const left = at - now();
  if (Math.abs(left) < 500) return 'now';
  return left > 0 ? `in ${span(left)}` : `${span(left)} ago`;
}

const clockFormat = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const dayFormat = new Intl.DateTimeFormat(undefined, {
  weekday: 'short',
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
});

/** A time in the browser's zone; with the day unless it is today. @param {number} at */
export function local(at) {
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString()
    ? clockFormat.format(date)
    : dayFormat.format(date);
}

/** @param {number} at */
export const utc = (at) => new Date(at).toISOString().replace('.000', '');

/** A time element: local, with UTC on hover. @param {string | null | undefined} text */
export function time(text) {
  if (!text) return h('span', { class: 'quiet' }, '–');
  const at = Date.parse(text);
  return h('time', { datetime: text, title: `${utc(at)} (UTC)` }, local(at));
}

/** A number with its noun. @param {number} n @param {string} one @param {string} [many] */
export const count = (n, one, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`;

/** A button that copies a text, and says so. @param {() => string} text */
export function copyButton(text) {
  const said = h('span', { role: 'status', class: 'quiet' });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text());
      setText(said, ' Copied.');
    } catch {
      setText(said, ' Select the text to copy it.');
    }
  };
  return h('span', {}, h('button', { type: 'button', class: 'small', onclick: copy }, 'Copy'), said);
}

/** Returns a function that calls `draw` in the next frame, once however often it is called. @param {() => void} draw */
export function oncePerFrame(draw) {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      draw();
    });
  };
}

/** Calls a function once a second while the page is visible; returns how to stop. @param {() => void} tick */
export function everySecond(tick) {
  const timer = setInterval(() => {
    if (!document.hidden) tick();
  }, 1000);
  const onShow = () => {
    if (!document.hidden) tick();
  };
  document.addEventListener('visibilitychange', onShow);
  return () => {
    clearInterval(timer);
    document.removeEventListener('visibilitychange', onShow);
  };
}

export { MINUTE, HOUR, DAY };
