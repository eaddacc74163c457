// The history: ended events with the API's filters, counts by day, and times to approval. CSV and JSON for download.

import { get, list } from './api.js';
import { DAY, count, fill, h, now, setText, span, time } from './dom.js';
import { SYMBOLS, shortScope, stageBadge, vmNames } from './events.js';

/** @import {Event, HistorySummary} from 'notbefore-api' */
/** @import {View} from './app.js' */

/** Most events that are listed, and that a file holds. */
const LISTED_MAX = 1000,
  FILE_MAX = 20_000;
const TYPES = ['Freeze', 'Reboot', 'Redeploy', 'Preempt', 'Terminate', 'SpotRebalanceRecommendation'];

/** @type {View} */
export function historyView({ query, setQuery, signal }) {
  const field = (
    /** @type {string} */ name,
    /** @type {string} */ label,
    /** @type {HTMLElement} */ input,
  ) => {
    input.id = `f-${name}`;
    input.setAttribute('name', name);
    return h('div', { class: 'field' }, h('label', { for: input.id }, label), input);
  };
  const choose = (/** @type {string[][]} */ choices, /** @type {string} */ chosen) =>
    h(
      'select',
      {},
      choices.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
    );
  const inputs = {
    days: choose(
      [
        ['1', 'a day'],
        ['7', 'a week'],
        ['30', '30 days'],
        ['90', '90 days'],
      ],
      query.days ?? '7',
    ),
    type: choose([['', 'all'], ...TYPES.map((type) => [type, type])], query.type ?? ''),
    outcome: choose(
      [
        ['', 'all'],
        ['Completed', 'Completed'],
        ['Cancelled', 'Cancelled'],
      ],
      query.outcome ?? '',
    ),
    scope: h('input', { type: 'search', value: query.scope ?? '' }),
    vm: h('input', { type: 'search', value: query.vm ?? '' }),
    host: h('input', { type: 'search', value: query.host ?? '' }),
  };
  const status = h('span', { class: 'quiet', role: 'status' }),
    chart = h('div', {}),
    table = h('div', {});
  const form = h(
    'form',
    {
      class: 'tools',
      onsubmit: (/** @type {Event} */ event) => {
        /** @type {any} */ (event).preventDefault();
        void load();
      },
    },
    field('days', 'Past', inputs.days),
    field('type', 'Type', inputs.type),
    field('outcome', 'Outcome', inputs.outcome),
    field('scope', 'Scope', inputs.scope),
    field('vm', 'VM', inputs.vm),
    field('host', 'Host', inputs.host),
    h('button', { type: 'submit' }, 'Show'),
  );

  const filters = () => {
    const { days, ...rest } = Object.fromEntries(
      Object.entries(inputs).map(([name, input]) => [name, input.value.trim()]),
    );
    return {
      since: new Date(now() - Number(days) * DAY).toISOString(),
      ...Object.fromEntries(Object.entries(rest).filter(([, value]) => value)),
    };
  };

  let turn = 0;
  async function load() {
    setQuery(
      Object.fromEntries(
        Object.entries(inputs).map(([name, input]) => [
          name,
          name === 'days' && input.value === '7' ? '' : input.value.trim(),
        ]),
      ),
    );
    setText(status, 'Loading…');
    const mine = (turn += 1);
    const all = filters();
    try {
      /** @type {[HistorySummary, { items: Event[], isCut: boolean }]} */
      const [summary, listed] = await Promise.all([
        get(`/v1/history/summary?${new URLSearchParams(all)}`, signal),
        list(`/v1/history?order=newest&${new URLSearchParams(all)}`, { max: LISTED_MAX, signal }),
      ]);
      if (mine !== turn) return;
      setText(
        status,
        `${count(summary.events, 'event')}${summary.partial ? `, counted from ${new Date(summary.since).toLocaleString()} on` : ''}`,
      );
      drawChart(summary);
      drawTable(listed.items, listed.isCut);
    } catch (error) {
      if (!signal.aborted) setText(status, /** @type {Error} */ (error).message);
    }
  }

  /** @param {HistorySummary} summary */
  function drawChart(summary) {
    /**
     * @type {Map<string, { label: string, completed: number, cancelled: number, types: Map<string, number> }>}
     */
    const days = new Map();
    for (const one of summary.days) {
      const day = days.get(one.day) ?? {
        label: new Date(one.day).toLocaleDateString(undefined, {
          day: 'numeric',
          month: 'short',
          timeZone: 'UTC',
        }),
        completed: 0,
        cancelled: 0,
        types: new Map(),
      };
      days.set(one.day, day);
      if (one.outcome === 'Cancelled') day.cancelled += one.events;
      else day.completed += one.events;
      day.types.set(one.type, (day.types.get(one.type) ?? 0) + one.events);
    }
    const most = Math.max(1, ...[...days.values()].map((day) => day.completed + day.cancelled));
    const part = (/** @type {string} */ name, /** @type {number} */ n) => {
      const bar = h('div', { class: `part ${name}` });
      bar.style.height = `${(n / most) * 100}%`;
      return bar;
    };
    const { approval } = summary;
    const cell = (/** @type {any} */ text) => h('td', {}, String(text));
    fill(
      chart,
      days.size > 0 &&
        h(
          'div',
          {
            class: 'chart',
            role: 'img',
            'aria-label': 'Ended events per day; the table below has the numbers',
          },
          [...days.values()].map((day) =>
            h(
              'div',
              {
                class: 'day',
                title: `${day.label}: ${[...day.types].map(([type, n]) => `${n} ${type}`).join(', ')}; ${day.cancelled} cancelled`,
              },
              h(
                'div',
                { class: 'stack' },
                part('cancelled', day.cancelled),
                part('completed', day.completed),
              ),
              h('span', {}, day.label),
            ),
          ),
        ),
      days.size > 0 &&
        h(
          'p',
          { class: 'legend' },
          h('span', { class: 'part completed' }),
          ' completed ',
          h('span', { class: 'part cancelled' }),
          ' cancelled',
        ),
      h(
        'p',
        {},
        approval.events > 0
          ? `From announcement to approval, ${count(approval.events, 'event')}: half within ${span(approval.p50_seconds * 1000)}, nine in ten within ${span(approval.p90_seconds * 1000)}, the slowest ${span(approval.max_seconds * 1000)}.`
          : summary.events > 0 && 'No event was approved.',
      ),
      days.size > 0 &&
        h(
          'details',
          {},
          h('summary', {}, 'Events per day (UTC), by type and outcome'),
          h(
            'table',
            {},
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['Day', 'Type', 'Outcome', 'Events'].map((text) => h('th', {}, text)),
              ),
            ),
            h(
              'tbody',
              {},
              summary.days.map((one) =>
                h('tr', {}, cell(one.day.slice(0, 10)), cell(one.type), cell(one.outcome), cell(one.events)),
              ),
            ),
          ),
        ),
    );
  }

  /** @param {Event[]} events @param {boolean} isCut */
  function drawTable(events, isCut) {
    fill(
      table,
      events.length === 0
        ? h('p', { class: 'quiet' }, 'No event ended in this time.')
        : h(
            'table',
            { class: 'wide' },
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['Ended', 'Event', 'VMs', 'Scope', 'Outcome', 'Cause'].map((text) => h('th', {}, text)),
              ),
            ),
            h(
              'tbody',
              {},
              events
                .slice(0, 150)
                .map((event) =>
                  h(
                    'tr',
                    {},
                    h('td', {}, time(event.ended_at)),
                    h(
                      'td',
                      {},
                      h('a', { href: `#/events/${event.id}` }, `${SYMBOLS[event.type] ?? ''} ${event.type}`),
                    ),
                    h('td', { class: 'wrap' }, vmNames(event)),
                    h('td', {}, shortScope(event.scope)),
                    h('td', {}, stageBadge(event)),
                    h('td', {}, event.cause),
                  ),
                ),
            ),
          ),
      (isCut || events.length > 150) &&
        h('p', { class: 'quiet' }, 'The newest 150 are shown; a file has all.'),
    );
  }

  /** @param {'csv' | 'json'} kind */
  async function save(kind) {
    setText(status, 'Reading…');
    try {
      const query = new URLSearchParams(filters());
      const { items, isCut } = await list(`/v1/history?order=newest&${query}`, { max: FILE_MAX, signal });
      const events = /** @type {Event[]} */ (items);
      const text = kind === 'json' ? JSON.stringify(events, null, 2) : csv(events);
      const type = kind === 'json' ? 'application/json' : 'text/csv';
      const url = URL.createObjectURL(new Blob([text], { type }));
      h('a', { href: url, download: `notbefore-history.${kind}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
      setText(status, `${count(events.length, 'event')} written${isCut ? ', the newest of more' : ''}`);
    } catch (error) {
      if (!signal.aborted) setText(status, /** @type {Error} */ (error).message);
    }
  }

  Object.values(inputs).forEach((input) => input.addEventListener('change', () => void load()));
  void load();
  const element = h(
    'div',
    { class: 'view' },
    h(
      'div',
      { class: 'title-row' },
      h('h1', {}, 'History'),
      status,
      h(
        'div',
        { class: 'actions' },
        h('button', { type: 'button', onclick: () => void save('csv') }, 'CSV'),
        h('button', { type: 'button', onclick: () => void save('json') }, 'JSON'),
      ),
    ),
    form,
    h('section', { 'aria-label': 'Summary' }, chart),
    h('section', { 'aria-label': 'Events' }, table),
  );
  return { element, title: 'History' };
}

/** @param {Event[]} events */
export function csv(events) {
  const quote = (/** @type {unknown} */ value) => {
    const text = String(value ?? '');
    // A spreadsheet takes a text that begins like this for a formula; the quote makes it text.
    const isFormula = /^[\s\p{Cc}]*[=+\-@\uff1d\uff0b\uff0d\uff20]/u.test(text);
    return `"${(isFormula ? `'${text}` : text).replaceAll('"', '""')}"`;
  };
  /** @type {[string, (event: Event) => unknown][]} */
  const columns = [
    ['event', (event) => event.id],
    ['operation', (event) => event.operation],
    ['type', (event) => event.type],
    ['outcome', (event) => event.status],
    ['cause', (event) => event.cause],
    ['source', (event) => event.source],
    ['scope', (event) => event.scope],
    ['update_domain', (event) => event.update_domain],
    ['vms', (event) => event.resources.map((one) => one.name).join(' ')],
    ['hosts', (event) => [...new Set(event.resources.map((one) => one.host ?? ''))].join(' ')],
    ['scheduled_at', (event) => event.scheduled_at],
    ['approved', (event) => event.approved],
    ['started_at', (event) => event.started_at],
    ['ended_at', (event) => event.ended_at],
    ['description', (event) => event.description],
  ];
  const rows = [
    columns.map(([name]) => name),
    ...events.map((event) => columns.map(([, cell]) => cell(event))),
  ];
  return rows.map((row) => row.map(quote).join(',')).join('\r\n');
}
