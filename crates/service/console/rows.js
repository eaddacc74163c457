// A list of any length with a fixed pool of rows. Scrolling moves rows by `transform` and points them at other items;
// the document never has more rows than the pool.

import { h, oncePerFrame } from './dom.js';

/** Rows above and below the visible part. */
const OVERSCAN = 4;
/** Most rows in the document, on a screen of any height. */
const POOL_MAX = 120;
let lists = 0;

/**
 * @template R
 * @typedef {{ element: HTMLElement, parts: R, index: number }} Row
 */

/** @template R */
export class Rows {
  /**
   * @param {{ label: string, rowHeight: number, head?: HTMLElement, make: () => { element: HTMLElement, parts: R },
   *   fill: (parts: R, index: number, element: HTMLElement) => void, open?: (index: number) => void, empty?: string }} options
   */
  constructor({ label, rowHeight, head, make, fill, open, empty = 'Nothing here.' }) {
    this.rowHeight = rowHeight;
    this.make = make;
    this.fill = fill;
    this.open = open;
    this.count = 0;
    this.active = -1;
    this.id = `rows${(lists += 1)}`;
    /** @type {Row<R>[]} */
    this.pool = [];
    this.body = h('div', { class: 'rows-body', role: 'rowgroup' });
    this.emptyText = h('p', { class: 'quiet rows-empty' }, empty);
    this.scroller = h(
      'div',
      { class: 'rows', role: 'grid', 'aria-label': label, tabindex: 0 },
      head,
      this.body,
    );
    this.element = h('div', { class: 'rows-frame' }, this.scroller, this.emptyText);
    this.schedule = oncePerFrame(() => this.draw());
    this.scroller.addEventListener('scroll', () => this.schedule(), { passive: true });
    this.scroller.addEventListener('keydown', (event) => this.onKey(event));
    this.body.addEventListener('click', (event) => this.onClick(event));
    this.observer = new ResizeObserver(() => this.schedule());
    this.observer.observe(this.scroller);
    this.headHeight = 0;
  }

  /** Shows a list of this length; all rows are filled again. @param {number} count */
  show(count) {
    this.count = count;
    if (this.active >= count) this.active = count - 1;
    this.body.style.height = `${count * this.rowHeight}px`;
    this.scroller.setAttribute('aria-rowcount', String(count));
    this.emptyText.hidden = count > 0;
    this.pool.forEach((row) => {
      row.index = -1;
    });
    this.draw();
  }

  draw() {
    const { rowHeight, count } = this;
    const height = this.scroller.clientHeight || innerHeight;
    const wanted = Math.min(POOL_MAX, count, Math.ceil(height / rowHeight) + 2 * OVERSCAN);
    while (this.pool.length < wanted) {
      const { element, parts } = this.make();
      element.classList.add('row');
      element.setAttribute('role', 'row');
      element.id = `${this.id}-${this.pool.length}`;
      this.body.append(element);
      this.pool.push({ element, parts, index: -1 });
      // A row's place in the pool follows from its index, so all of them must be placed again.
      this.pool.forEach((row) => {
        row.index = -1;
      });
    }
    const first = Math.max(
      0,
      Math.min(count - wanted, Math.floor(this.scroller.scrollTop / rowHeight) - OVERSCAN),
    );
    const size = this.pool.length;
    /** @type {Set<number>} */
    const used = new Set();
    for (let index = first; index < first + wanted; index += 1) {
      used.add(index % size);
      this.place(this.pool[index % size], index);
    }
    this.pool.forEach((row, slot) => {
      if (!used.has(slot)) this.hide(row);
    });
    const current = this.active >= 0 ? this.pool[this.active % size] : null;
    if (current && current.index === this.active)
      this.scroller.setAttribute('aria-activedescendant', current.element.id);
    else this.scroller.removeAttribute('aria-activedescendant');
  }

  /** @param {Row<R>} row @param {number} index */
  place(row, index) {
    const { element } = row;
    element.classList.toggle('active', index === this.active);
    if (row.index === index) return;
    row.index = index;
    element.hidden = false;
    element.style.transform = `translateY(${index * this.rowHeight}px)`;
    element.setAttribute('aria-rowindex', String(index + 1));
    this.fill(row.parts, index, element);
  }

  /** @param {Row<R>} row */
  hide(row) {
    row.index = -1;
    row.element.hidden = true;
  }

  /** Fills the visible rows again, for example after a second has passed. */
  refill() {
    this.pool.forEach((row) => {
      if (row.index >= 0) this.fill(row.parts, row.index, row.element);
    });
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.target !== this.scroller || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
    /** @type {Record<string, number>} */
    const moves = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
      Home: 0,
      End: this.count - 1,
    };
    if (event.key === 'Enter' && this.active >= 0) {
      this.open?.(this.active);
    } else if (event.key in moves && this.count > 0) {
      this.activate(Math.max(0, Math.min(this.count - 1, moves[event.key])));
    } else {
      return;
    }
    event.preventDefault();
  }

  /** @param {number} index */
  activate(index) {
    this.active = index;
    const top = index * this.rowHeight;
    const { scrollTop, clientHeight } = this.scroller;
    const headHeight = /** @type {HTMLElement} */ (this.body).offsetTop;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + this.rowHeight > scrollTop + clientHeight - headHeight)
      this.scroller.scrollTop = top + this.rowHeight - clientHeight + headHeight;
    this.draw();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const target = /** @type {Element} */ (event.target);
    if (!this.open || target.closest('a, button, input, label')) return;
    const element = target.closest('.row');
    const row = this.pool.find((one) => one.element === element);
    if (row) {
      this.active = row.index;
      this.open(row.index);
    }
  }

  close() {
    this.observer.disconnect();
  }
}

/** A cell of a row. @param {string} name @param {...any} children */
export const cell = (name, ...children) => h('div', { class: `cell ${name}`, role: 'gridcell' }, ...children);
/** The head of a table: class and text of each column. @param {[string, string][]} columns */
export const headRow = (columns) =>
  h(
    'div',
    { class: 'table-row head', role: 'row' },
    columns.map(([name, text]) => h('div', { class: `cell ${name}`, role: 'columnheader' }, text)),
  );

/** The selected items of a list, by a checkbox in each row. */
export class Selection {
  /** @param {() => void} onChange */
  constructor(onChange) {
    /** @type {Set<string>} */
    this.ids = new Set();
    this.onChange = onChange;
  }

  /** The checkbox of a new row. */
  box() {
    const box = h('input', { type: 'checkbox' });
    box.addEventListener('change', () => {
      const id = box.dataset.id ?? '';
      if (box.checked) this.ids.add(id);
      else this.ids.delete(id);
      this.onChange();
    });
    return box;
  }

  /** Points a checkbox at an item. @param {HTMLInputElement} box @param {string} id @param {string} name */
  fill(box, id, name) {
    box.dataset.id = id;
    box.checked = this.ids.has(id);
    box.setAttribute('aria-label', `Select ${name}`);
  }
}
