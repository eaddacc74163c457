// The view `now`: what happens next, as a timeline and as a table with the same events.

import { count, everySecond, h, setText } from './dom.js';
import {
  SYMBOLS,
  byUrgency,
  localTimes,
  readBy,
  setBadge,
  shortScope,
  vmNames,
  when,
  whenTitle,
} from './events.js';
import { feed, on } from './feed.js';
import { Rows, cell, headRow } from './rows.js';
import { LANE_HEIGHT, Timeline, WINDOWS } from './timeline.js';

/** @import {Event} from 'notbefore-api' */
/** @import {View} from './app.js' */

const ROW_HEIGHT = 40;
/** Most lanes that the timeline shows without scrolling. */
const LANES_SHOWN = 12;

/** @type {View} */
export function nowView({ query, setQuery, signal, session, act }) {
  /** @type {Event[]} */
  let events = [];
  const open = (/** @type {Event} */ event) => {
    location.hash = `#/events/${event.id}`;
  };
  const timeline = new Timeline({ open });
  timeline.kind = /** @type {any} */ (['scope', 'vm', 'host'].includes(query.lanes) ? query.lanes : 'scope');
  timeline.isCollapsed = query.idle === 'collapsed';
  timeline.window = WINDOWS.find((one) => one.name === query.window) ?? WINDOWS[0];
  timeline.reset();

  const head = headRow([
    ['when', 'When'],
    ['what', 'Event'],
    ['vms', 'VMs'],
    ['scope', 'Scope'],
    ['state', 'State'],
    ['read', 'Read'],
    ['waits', 'Waits for'],
  ]);
  const table = new Rows({
    label: 'Events, the next one first',
    rowHeight: ROW_HEIGHT,
    head,
    empty: 'Nothing is scheduled.',
    make: () => {
      const parts = {
        when: cell('when'),
        link: h('a', { class: 'event-link' }),
        vms: cell('vms'),
        scope: cell('scope'),
        badge: h('span', { class: 'badge' }),
        read: cell('read'),
        waits: cell('waits'),
      };
      const element = h(
        'div',
        { class: 'table-row' },
        parts.when,
        cell('what', parts.link),
        parts.vms,
        parts.scope,
        cell('state', parts.badge),
        parts.read,
        parts.waits,
      );
      return { element, parts };
    },
    fill: (parts, index) => {
      const event = events[index];
      setText(parts.when, when(event));
      parts.when.title = whenTitle(event);
      setText(parts.link, `${SYMBOLS[event.type] ?? ''} ${event.type}`);
      parts.link.setAttribute('href', `#/events/${event.id}`);
      setText(parts.vms, vmNames(event));
      parts.vms.title = event.resources.map((one) => one.name).join(', ');
      setText(parts.scope, shortScope(event.scope));
      setBadge(parts.badge, event);
      setText(parts.read, event.ended_at ? '' : readBy(event));
      parts.read.classList.toggle('bad', event.status !== 'Advisory' && Boolean(event.unread_by?.length));
      setText(parts.waits, localTimes(event.waits_for));
      parts.waits.title = event.waits_for ?? '';
    },
    open: (index) => open(events[index]),
  });
  table.scroller.classList.add('table');

  const summary = h('p', { class: 'summary', role: 'status' });
  const choose = (
    /** @type {string} */ label,
    /** @type {string} */ name,
    /** @type {[string, string][]} */ choices,
    /** @type {string} */ chosen,
    /** @type {(value: string) => void} */ set,
  ) =>
    h(
      'fieldset',
      { class: 'choices' },
      h('legend', {}, label),
      choices.map(([value, text]) =>
        h(
          'label',
          {},
          h('input', {
            type: 'radio',
            name,
            value,
            checked: value === chosen,
            onchange: () => {
              set(value);
              setQuery({ [name]: value });
            },
          }),
          h('span', {}, text),
        ),
      ),
    );
  const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ click) =>
    h('button', { type: 'button', class: 'small', 'aria-label': label, title: label, onclick: click }, text);
  const tools = h(
    'div',
    { class: 'tools' },
    choose(
      'Lanes',
      'lanes',
      [
        ['scope', 'Scopes'],
        ['vm', 'VMs'],
        ['host', 'Hosts'],
      ],
      timeline.kind,
      (value) => {
        timeline.kind = /** @type {any} */ (value);
        draw();
      },
    ),
    choose(
      'Window',
      'window',
      WINDOWS.map(({ name }) => [name, name]),
      timeline.window.name,
      (value) => {
        timeline.window = WINDOWS.find((one) => one.name === value) ?? WINDOWS[0];
        timeline.reset();
      },
    ),
    h(
      'div',
      { class: 'group' },
      button('◀', 'Earlier', () => timeline.pan(-0.25)),
      button('Now', 'Back to now', () => timeline.reset()),
      button('▶', 'Later', () => timeline.pan(0.25)),
      button('−', 'Zoom out', () => timeline.zoom(1.5)),
      button('+', 'Zoom in', () => timeline.zoom(0.66)),
    ),
    h(
      'label',
      { class: 'check' },
      h('input', {
        type: 'checkbox',
        checked: timeline.isCollapsed,
        onchange: (/** @type {any} */ change) => {
          timeline.isCollapsed = change.target.checked;
          timeline.reset();
          setQuery({ idle: timeline.isCollapsed ? 'collapsed' : '' });
          draw();
        },
      }),
      'Collapse idle time',
    ),
  );
  // A window that was moved or zoomed is none of the choices.
  timeline.onMoved = () =>
    tools.querySelectorAll('input[name=window]').forEach((input) => {
      const choice = /** @type {HTMLInputElement} */ (input);
      choice.checked = timeline.isFollowing && choice.value === timeline.window.name;
    });
  const canAct = session.grants.some((grant) => grant.role !== 'viewer');
  const element = h(
    'div',
    { class: 'view now' },
    h(
      'div',
      { class: 'title-row' },
      h('h1', {}, 'Now'),
      summary,
      canAct &&
        h(
          'button',
          {
            type: 'button',
            class: 'primary',
            onclick: () => act({ kind: 'vms', vms: [], cause: 'user-restart' }),
          },
          'Schedule…',
        ),
    ),
    h('section', { 'aria-label': 'Timeline' }, tools, timeline.element),
    h('section', { 'aria-label': 'Table', class: 'grow' }, h('h2', {}, 'Next'), table.element),
  );

  function draw() {
    events = [...feed.events.values(), ...feed.past.values()].sort(byUrgency);
    const live = [...feed.events.values()];
    const started = live.filter((event) => event.status === 'Started').length,
      advisories = live.filter((event) => event.status === 'Advisory').length,
      scheduled = live.length - started - advisories;
    const unread = live.filter((event) => event.status !== 'Advisory' && event.unread_by?.length).length;
    setText(
      summary,
      feed.hasList
        ? [
            live.length === advisories ? 'Nothing is scheduled' : `${count(scheduled, 'event')} scheduled`,
            started > 0 && `${started} started`,
            advisories > 0 && `${advisories} advisory`,
            unread > 0 && `${unread} not read by all`,
            feed.isCut && 'only the first are shown',
          ]
            .filter(Boolean)
            .join(' · ')
        : 'Loading…',
    );
    setText(table.emptyText, feed.hasList ? 'Nothing is scheduled.' : 'Loading…');
    timeline.show(events);
    if (!feed.hasList) timeline.rows.emptyText.hidden = true;
    const lanes = Math.max(2, Math.min(LANES_SHOWN, timeline.lanes.length));
    timeline.rows.scroller.style.height = `${lanes * LANE_HEIGHT + 34}px`;
    table.show(events.length);
  }
  on('events', draw, signal);
  const stop = everySecond(() => {
    if (feed.prune()) draw();
    timeline.draw();
    table.refill();
  });
  signal.addEventListener('abort', () => {
    stop();
    timeline.close();
    table.close();
  });
  requestAnimationFrame(draw);
  return { element, title: 'Now' };
}
