// One VM: its state, its events, its log, and what can be done with it.

import { at, get } from './api.js';
import { everySecond, fill, h, local, relative, setText, time } from './dom.js';
import {
  SYMBOLS,
  byUrgency,
  isFullOperator,
  linked,
  may,
  shortScope,
  stageBadge,
  vmNames,
  when,
} from './events.js';
import { feed, on } from './feed.js';

/** @import {Event, Fact, Vm, VmLog, VmLogEntry} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */
/** @import {Child} from './dom.js' */

/** Whether a VM listens, as text. @param {Vm} vm */
export const listening = (vm) =>
  vm.state === 'deallocated'
    ? '– deallocated'
    : vm.listening === 'yes'
      ? '● listens'
      : vm.listening === 'no'
        ? '○ silent'
        : '? unknown';

/**
 * Live events of a filter, kept up to date.
 * @param {(event: Event) => boolean} isMeant
 * @param {AbortSignal} signal
 */
export function liveEvents(isMeant, signal) {
  const element = h('div', {});
  function draw() {
    const events = [...feed.events.values()].filter(isMeant).sort(byUrgency);
    fill(
      element,
      events.length === 0
        ? h('p', { class: 'quiet' }, 'Nothing is scheduled.')
        : h(
            'ul',
            { class: 'event-list' },
            events.map((event) =>
              h(
                'li',
                {},
                stageBadge(event),
                h(
                  'a',
                  { href: `#/events/${event.id}` },
                  `${SYMBOLS[event.type] ?? ''} ${event.type} of ${vmNames(event)}`,
                ),
                h('span', {}, when(event)),
                event.waits_for && h('span', { class: 'quiet' }, 'waits for ', linked(event.waits_for)),
              ),
            ),
          ),
    );
  }
  on('events', draw, signal);
  draw();
  return element;
}

/** @type {AsyncView} */
export async function vmView({ argument, session, signal, act }) {
  /** @type {Vm} */
  let vm = await get(at`/v1/vms/${argument}`, signal);
  const facts = h('dl', { class: 'facts' }),
    log = h('div', {}),
    actions = h('div', { class: 'actions' });
  const name = h('h1', {}, vm.name);
  const polled = h('span', {});
  const tick = () => {
    const last = vm.last_poll_at
      ? `, last poll ${relative(Date.parse(vm.last_poll_at))} at api-version ${vm.last_poll_version ?? ''}`
      : '';
    setText(polled, listening(vm) + last);
  };
  signal.addEventListener('abort', everySecond(tick));

  async function draw() {
    /** @type {VmLog} */
    const entries = await get(at`/v1/vms/${argument}/log`, signal);
    const rows = /** @type {[string, any][]} */ ([
      ['Path', vm.path],
      ['State', vm.state],
      ['Listening', polled],
      [
        'Scope',
        h(
          'a',
          { href: `#/fleet?scope=${encodeURIComponent(vm.scope)}` },
          `${shortScope(vm.scope)} (${vm.kind})`,
        ),
      ],
      ['Update domain', String(vm.update_domain)],
      ['Fault domain', String(vm.fault_domain)],
      ['Zone', vm.zone],
      [
        'Host',
        vm.host &&
          (isFullOperator(session)
            ? h('a', { href: `#/hosts/${encodeURIComponent(vm.host)}` }, vm.host)
            : vm.host),
      ],
      ['Spot', vm.spot ? 'yes' : 'no'],
      ['Addresses', vm.addresses.join(', ')],
      ['Id', h('code', {}, vm.id)],
    ]).filter(([, value]) => value);
    fill(facts, rows.map(([title, value]) => [h('dt', {}, title), h('dd', {}, value)]).flat());
    tick();
    const isTenant = may(session, 'tenant', vm.scope),
      isRunning = vm.state === 'running';
    const verbs = /** @type {[string, string, boolean][]} */ ([
      ['user-restart', 'Restart…', isTenant && isRunning],
      ['user-redeploy', 'Redeploy…', isTenant && isRunning],
      ['eviction', 'Evict…', may(session, 'operator', vm.scope) && isRunning && vm.spot],
      ['deletion', 'Delete…', isTenant],
    ]);
    const start = () => act({ kind: 'start-vm', vm });
    fill(
      actions,
      h('a', { class: 'button', href: `#/history?days=30&vm=${encodeURIComponent(vm.path)}` }, 'History'),
      isTenant && !isRunning && h('button', { type: 'button', class: 'primary', onclick: start }, 'Start…'),
      verbs
        .filter(([, , is]) => is)
        .map(([cause, text], n) =>
          h(
            'button',
            {
              type: 'button',
              class: n === 0 ? 'primary' : '',
              onclick: () => act({ kind: 'vms', vms: [vm.path], cause }),
            },
            text,
          ),
        ),
    );
    fill(
      log,
      entries.entries.length === 0
        ? h(
            'p',
            { class: 'quiet' },
            `Nothing since the service started, ${local(Date.parse(entries.since))}.`,
          )
        : h(
            'table',
            { tabindex: 0 },
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['Last', 'Count', 'What', 'Detail'].map((text) => h('th', {}, text)),
              ),
            ),
            h(
              'tbody',
              {},
              entries.entries.map((entry) =>
                h(
                  'tr',
                  {},
                  h('td', {}, time(entry.last_at)),
                  h('td', {}, String(entry.count)),
                  h('td', {}, entry.kind.replace('-', ' ')),
                  h('td', { class: 'wrap' }, logText(entry)),
                ),
              ),
            ),
          ),
    );
  }
  await draw();
  async function reload() {
    try {
      vm = await get(at`/v1/vms/${argument}`, signal);
      await draw();
    } catch {
      /* The VM is gone, or the view. */
    }
  }
  on('state', () => feed.state === 'live' && void reload(), signal);
  const isOwn = (/** @type {Fact} */ fact) =>
    fact.scope?.toLowerCase() === vm.scope.toLowerCase() &&
    fact.vms?.some((one) => one.toLowerCase() === vm.name.toLowerCase());
  on('facts', (/** @type {Fact[]} */ all) => all.some(isOwn) && void reload(), signal);
  addEventListener('acted', () => void reload(), { signal });
  const events = liveEvents((event) => event.resources.some((one) => one.vm === vm.id), signal);
  const element = h(
    'div',
    { class: 'view' },
    h('div', { class: 'title-row' }, name, actions),
    h(
      'div',
      { class: 'columns' },
      h('section', { 'aria-label': 'VM' }, h('h2', {}, 'VM'), facts),
      h(
        'div',
        {},
        h('section', { 'aria-label': 'Events' }, h('h2', {}, 'Events'), events),
        h('section', { 'aria-label': 'Log' }, h('h2', {}, 'Log'), log),
      ),
    ),
  );
  return { element, title: vm.name };
}

/**
 * An entry of a VM's log; its events are links.
 * @param {VmLogEntry} entry
 * @returns {Child[]}
 */
function logText(entry) {
  const events = (entry.events ?? []).flatMap((id, n) => [
    n > 0 && ', ',
    h('a', { href: `#/events/${id}`, title: id }, id.slice(0, 8)),
  ]);
  if (entry.more_events) events.push(` and ${entry.more_events} more`);
  switch (entry.kind) {
    case 'refused':
      return [`${entry.request ?? ''}: ${entry.status ?? ''} ${entry.message ?? ''}`];
    case 'approved':
      return events;
    case 'polled':
      return [
        `by ${entry.client || 'a client without User-Agent'} at api-version ${entry.api_version ?? ''}`,
      ];
    default:
      return [
        `incarnation ${entry.incarnation ?? ''} at api-version ${entry.api_version ?? ''}: `,
        ...(events.length ? events : ['shows none of its events']),
      ];
  }
}
