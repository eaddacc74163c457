// The timeline: one lane per scope, VM or host; each event a bar from its announcement through NotBefore to its end.
// Lanes are rows of a pool (rows.js), bars are pooled within a lane, and both move by `transform`.

import { DAY, HOUR, MINUTE, h, local, now, oncePerFrame, setText } from './dom.js';
import { SYMBOLS, instant, stage, stageName, vmNames, when } from './events.js';
import { Rows } from './rows.js';

/** @import {Event} from 'notbefore-api' */
/** @typedef {'scope' | 'vm' | 'host'} LaneKind */
/**
 * @typedef {{ label: string, path: string, href: string, events: Event[], next: number, isPending: boolean }} Lane
 */
/**
 * A row of a lane: events that overlap are in rows below each other.
 * @typedef {{ lane: Lane, events: Event[], isFirst: boolean }} LaneRow
 */
/** @typedef {{ from: number, to: number }} Span */

export const LANE_HEIGHT = 34;
/** The timeline reaches from an hour ago to a week ahead. */
const PAST_MS = HOUR,
  FUTURE_MS = 7 * DAY;
const SPAN_MIN = 5 * MINUTE;
/** Width of idle time when it is collapsed. */
const GAP_MS = 2 * MINUTE;
/** Steps of the axis. */
const STEPS = [MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY];
const BAR_MIN_PX = 20;

export const WINDOWS = [
  { name: '1 hour', before: 15 * MINUTE, after: 45 * MINUTE },
  { name: '6 hours', before: HOUR, after: 5 * HOUR },
  { name: '1 day', before: HOUR, after: 23 * HOUR },
  { name: '1 week', before: HOUR, after: FUTURE_MS },
];

/**
 * Groups events into lanes; pending lanes come first, the most urgent on top.
 * @param {Iterable<Event>} events
 * @param {LaneKind} kind
 * @returns {Lane[]}
 */
export function lanesOf(events, kind) {
  /** @type {Map<string, Lane>} */
  const lanes = new Map();
  const add = (
    /** @type {string} */ path,
    /** @type {string} */ label,
    /** @type {string} */ href,
    /** @type {Event} */ event,
  ) => {
    let lane = lanes.get(path);
    if (!lane) lanes.set(path, (lane = { label, path, href, events: [], next: Infinity, isPending: false }));
    if (lane.events.at(-1) !== event) lane.events.push(event);
    if (!event.ended_at) {
      lane.isPending = true;
      lane.next = Math.min(lane.next, instant(event));
    } else if (!lane.isPending) {
      lane.next = -instant(event);
    }
  };
  for (const event of events) {
    if (kind === 'scope') {
      add(
        event.scope,
        event.scope.replace(/^default\/(default\/)?/, ''),
        `#/fleet?scope=${encodeURIComponent(event.scope)}`,
        event,
      );
    } else {
      for (const one of event.resources) {
        if (kind === 'vm')
          add(`${event.scope}/${one.name}`, one.name, `#/vms/${encodeURIComponent(one.vm)}`, event);
        else if (one.host) add(one.host, one.host, `#/hosts/${encodeURIComponent(one.host)}`, event);
      }
    }
  }
  return [...lanes.values()].sort(
    (one, two) =>
      Number(two.isPending) - Number(one.isPending) || one.next - two.next || (one.path < two.path ? -1 : 1),
  );
}

/**
 * Splits a lane into rows without overlapping bars.
 * @param {Lane} lane
 * @param {number} at
 * @returns {LaneRow[]}
 */
export function rowsOf(lane, at) {
  /** @type {{ events: Event[], end: number }[]} */
  const rows = [];
  const spans = lane.events
    .map((event) => ({ event, ...barSpan(event, at) }))
    .sort((one, two) => one.from - two.from || two.to - one.to);
  for (const { event, from, to } of spans) {
    const free = rows.find((row) => row.end <= from);
    if (free) {
      free.events.push(event);
      free.end = to;
    } else rows.push({ events: [event], end: to });
  }
  return rows.map(({ events }, n) => ({ lane, events, isFirst: n === 0 }));
}

/** The span that a bar covers. @param {Event} event @param {number} at */
export function barSpan(event, at) {
  const from = Date.parse(event.scheduled_at ?? event.started_at ?? event.not_before ?? '') || at;
  const due = Date.parse(event.not_before ?? event.started_at ?? '') || from;
  let to = Date.parse(event.ended_at ?? '');
  // An advisory has no deadline: its bar ends now.
  const isOpen = event.status === 'Started' || event.status === 'Advisory';
  if (!to) to = isOpen ? at : due + Math.max(0, event.duration_seconds) * 1000;
  return { from, due: Math.max(from, due), to: Math.max(from, due, to) };
}

/** Maps time to the axis; idle time can be collapsed to a fixed width. */
export class Scale {
  constructor() {
    /** Collapsed spans, in order. @type {Span[]} */
    this.gaps = [];
  }

  /** Collapses what no event covers. @param {Span[]} busy @param {Span} whole */
  collapse(busy, whole) {
    this.gaps = [];
    let end = whole.from;
    const sorted = [...busy].sort((one, two) => one.from - two.from);
    for (const { from, to } of [...sorted, { from: whole.to, to: whole.to }]) {
      if (from - end > 4 * GAP_MS) this.gaps.push({ from: end + GAP_MS, to: from - GAP_MS });
      end = Math.max(end, to);
    }
  }

  /** @param {number} time */
  position(time) {
    let saved = 0;
    for (const { from, to } of this.gaps) {
      if (time <= from) break;
      const inside = Math.min(time, to) - from;
      saved += inside - (inside / (to - from)) * GAP_MS;
    }
    return time - saved;
  }

  /** Whether a time is collapsed. @param {number} time */
  isIdle(time) {
    return this.gaps.some(({ from, to }) => time > from && time < to);
  }
}

export class Timeline {
  /** @param {{ open: (event: Event) => void }} options */
  constructor({ open }) {
    /** @type {LaneKind} */
    this.kind = 'scope';
    /** @type {LaneRow[]} */
    this.lanes = [];
    this.scale = new Scale();
    this.isCollapsed = false;
    this.window = WINDOWS[0];
    /** Start and length of what is shown, by the scale; the start follows the clock while `isFollowing`. */
    this.start = 0;
    this.length = 0;
    this.isFollowing = true;
    /** Width of the track in pixels, and its distance from the left of the rows. */
    this.width = 50;
    this.offset = 0;
    /** Draws in the next frame: a wheel turns faster than that. */
    this.schedule = oncePerFrame(() => this.draw());
    this.openEvent = open;
    /** Called when the shown time is chosen or moved. @type {() => void} */
    this.onMoved = () => {};
    this.axis = h('div', { class: 'axis-track' });
    this.nowLine = h('div', { class: 'now-line', 'aria-hidden': 'true' });
    const head = h(
      'div',
      { class: 'axis', role: 'row' },
      h('div', { class: 'lane-label', role: 'columnheader' }, 'Lane'),
      h('div', { role: 'columnheader', 'aria-label': 'Time', class: 'axis-cell' }, this.axis),
    );
    this.rows = new Rows({
      label: 'Timeline: lanes with events',
      rowHeight: LANE_HEIGHT,
      head,
      empty: 'No events. The timeline shows those of the past hour and the next week.',
      make: () => {
        const label = h('a', { class: 'lane-link' });
        const track = h('div', { class: 'track', role: 'gridcell' });
        /** @type {HTMLAnchorElement[]} */
        const bars = [];
        return {
          element: h(
            'div',
            { class: 'lane' },
            h('div', { class: 'lane-label', role: 'rowheader' }, label),
            track,
          ),
          parts: { label, track, bars },
        };
      },
      fill: (parts, index) => this.fillLane(parts, index),
      open: (index) => {
        const [first] = this.lanes[index].events;
        if (first) this.openEvent(first);
      },
    });
    this.rows.scroller.classList.add('timeline');
    this.rows.body.append(this.nowLine);
    this.element = this.rows.element;
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.axis);
    this.listen();
    this.reset();
  }

  /** The position of now. */
  get nowPosition() {
    return this.scale.position(now());
  }

  /** Reads the track's place. Reading it between changes of rows would make the browser lay out the page each time. */
  measure() {
    const { left, width } = this.axis.getBoundingClientRect();
    this.width = Math.max(50, width);
    this.offset = left - this.rows.body.getBoundingClientRect().left;
  }

  /** @param {number} time */
  x(time) {
    return ((this.scale.position(time) - this.start) / this.length) * this.width;
  }

  /** Back to the chosen window around now. */
  reset() {
    this.isFollowing = true;
    this.length = this.window.before + this.window.after;
    this.onMoved();
    this.schedule();
  }

  /** @param {number} factor @param {number} [at] Fraction of the width that stays in place. */
  zoom(factor, at = 0.3) {
    const length = Math.min(PAST_MS + FUTURE_MS, Math.max(SPAN_MIN, this.length * factor));
    this.start += (this.length - length) * at;
    this.length = length;
    this.isFollowing = false;
    this.onMoved();
    this.schedule();
  }

  /** @param {number} fraction Of the width. */
  pan(fraction) {
    this.start += this.length * fraction;
    this.isFollowing = false;
    this.onMoved();
    this.schedule();
  }

  /** @param {Event[]} events */
  show(events) {
    this.events = events;
    const at = now();
    this.lanes = lanesOf(events, this.kind).flatMap((lane) => rowsOf(lane, at));
    this.measure();
    this.warp();
    this.place();
    this.rows.show(this.lanes.length);
    this.drawAxis();
  }

  warp() {
    const at = now(),
      whole = { from: at - PAST_MS, to: at + FUTURE_MS };
    // Of a long wait, only its ends are busy.
    const busy = (this.events ?? []).flatMap((event) => {
      const { from, due, to } = barSpan(event, at);
      if (to - from <= HOUR) return [{ from, to }];
      return [from, due, to].map((time) => ({ from: time - 5 * MINUTE, to: time + 5 * MINUTE }));
    });
    if (this.isCollapsed) this.scale.collapse([...busy, { from: at - MINUTE, to: at + MINUTE }], whole);
    else this.scale.gaps = [];
  }

  /** Keeps the window within the hour before and the week ahead. */
  place() {
    const at = this.nowPosition;
    if (this.isFollowing) this.start = at - this.window.before;
    const first = this.scale.position(now() - PAST_MS),
      last = this.scale.position(now() + FUTURE_MS);
    this.length = Math.min(this.length, Math.max(SPAN_MIN, last - first));
    this.start = Math.max(first, Math.min(last - this.length, this.start));
  }

  draw() {
    this.measure();
    this.place();
    this.rows.refill();
    this.drawAxis();
  }

  drawAxis() {
    const width = this.width;
    const step = STEPS.find((one) => (one / this.length) * width >= 76) ?? DAY;
    const ticks = [];
    // Ticks are at round local times.
    const zone = new Date().getTimezoneOffset() * MINUTE;
    const begin = now() - PAST_MS;
    for (
      let time = Math.ceil((begin - zone) / step) * step + zone;
      time < now() + FUTURE_MS && ticks.length < 60;
      time += step
    ) {
      const x = this.x(time);
      if (x < -40 || x > width + 10 || this.scale.isIdle(time)) continue;
      ticks.push({
        x,
        text:
          step >= DAY
            ? new Date(time).toLocaleDateString(undefined, {
                weekday: 'short',
                day: 'numeric',
                month: 'short',
              })
            : local(time).replace(/:00(?= |$)/, ''),
      });
    }
    const marks = [...this.axis.children];
    ticks.forEach(({ x, text }, n) => {
      const mark = /** @type {HTMLElement} */ (
        marks[n] ?? this.axis.appendChild(h('span', { class: 'tick' }))
      );
      mark.hidden = false;
      mark.style.transform = `translateX(${x}px)`;
      setText(mark, text);
    });
    marks.slice(ticks.length).forEach((mark) => {
      /** @type {HTMLElement} */ (mark).hidden = true;
    });
    const x = this.x(now());
    this.nowLine.hidden = x < 0 || x > width;
    this.nowLine.style.transform = `translateX(${this.offset + x}px)`;
  }

  /**
   * @param {{ label: HTMLAnchorElement, track: HTMLElement, bars: HTMLAnchorElement[] }} parts
   * @param {number} index
   */
  fillLane({ label, track, bars }, index) {
    const { lane, events, isFirst } = this.lanes[index];
    setText(label, isFirst ? lane.label : '');
    label.hidden = !isFirst;
    label.title = lane.path;
    label.setAttribute('href', lane.href);
    const at = now(),
      width = this.width;
    let used = 0;
    for (const event of events) {
      const { from, due, to } = barSpan(event, at);
      const left = Math.max(-6, this.x(from));
      const right = Math.min(width + 20, Math.max(this.x(to), this.x(from) + BAR_MIN_PX));
      if (right < 0 || left > width) continue;
      const bar = bars[used] ?? this.addBar(track, bars);
      used += 1;
      bar.hidden = false;
      bar.style.transform = `translateX(${left}px)`;
      bar.style.width = `${right - left}px`;
      bar.dataset.stage = stage(event);
      bar.dataset.type = event.type;
      bar.href = `#/events/${event.id}`;
      const [symbol, text, mark] = /** @type {HTMLElement[]} */ ([...bar.children]);
      setText(symbol, SYMBOLS[event.type] ?? '•');
      setText(
        text,
        right - left > 70
          ? ` ${event.type}${this.kind === 'vm' ? '' : ` ${vmNames(event, 1)}`} · ${event.ended_at ? stageName(event) : when(event)}`
          : '',
      );
      const notBefore = this.x(due) - left;
      mark.hidden = notBefore < 2 || notBefore > right - left + 1;
      mark.style.transform = `translateX(${Math.min(notBefore, right - left - 3)}px)`;
      const title = `${event.type} of ${vmNames(event)}: ${stageName(event)}, ${when(event)}`;
      bar.title = title;
    }
    bars.slice(used).forEach((bar) => {
      bar.hidden = true;
    });
  }

  /** @param {HTMLElement} track @param {HTMLAnchorElement[]} bars */
  addBar(track, bars) {
    const bar = h(
      'a',
      { class: 'bar', draggable: 'false' },
      h('span', { class: 'bar-symbol', 'aria-hidden': 'true' }),
      h('span', { class: 'bar-text' }),
      h('span', { class: 'bar-due', 'aria-hidden': 'true' }),
    );
    bars.push(bar);
    track.append(bar);
    return bar;
  }

  listen() {
    const { scroller } = this.rows;
    scroller.addEventListener(
      'wheel',
      (event) => {
        if (event.ctrlKey || event.metaKey) {
          const box = this.axis.getBoundingClientRect();
          this.zoom(
            event.deltaY > 0 ? 1.25 : 0.8,
            Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)),
          );
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          this.pan((event.deltaX || event.deltaY) / this.width);
        } else {
          return;
        }
        event.preventDefault();
      },
      { passive: false },
    );
    scroller.addEventListener('keydown', (event) => {
      if (event.target !== scroller) return;
      /** @type {Record<string, () => void>} */
      const keys = {
        ArrowLeft: () => this.pan(-0.1),
        ArrowRight: () => this.pan(0.1),
        '+': () => this.zoom(0.7),
        '-': () => this.zoom(1.4),
        0: () => this.reset(),
      };
      if (event.ctrlKey || event.metaKey || !keys[event.key]) return;
      keys[event.key]();
      event.preventDefault();
    });
    let dragged = 0,
      lastX = 0,
      isDown = false;
    scroller.addEventListener('pointerdown', (event) => {
      if (event.button !== 0 || !(/** @type {Element} */ (event.target).closest('.track, .axis-cell')))
        return;
      isDown = true;
      dragged = 0;
      lastX = event.clientX;
    });
    scroller.addEventListener('pointermove', (event) => {
      if (!isDown) return;
      const moved = event.clientX - lastX;
      dragged += Math.abs(moved);
      if (dragged > 4) this.pan(-moved / this.width);
      lastX = event.clientX;
    });
    // A finger that moves up or down scrolls the list; the browser then cancels its pointer.
    for (const kind of ['pointerup', 'pointerleave', 'pointercancel'])
      scroller.addEventListener(kind, () => {
        isDown = false;
      });
    // A drag that ends on a bar does not open it.
    scroller.addEventListener(
      'click',
      (event) => {
        if (dragged > 4) {
          event.preventDefault();
          event.stopPropagation();
          dragged = 0;
        }
      },
      true,
    );
  }

  close() {
    this.resized.disconnect();
    this.rows.close();
  }
}
