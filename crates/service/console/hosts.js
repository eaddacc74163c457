// Hosts: how many VMs and events each has, and one host with its VMs, what is planned, and what blocks it.

import { at, get, list } from './api.js';
import { count, fill, h, local, relative, setText } from './dom.js';
import { CAUSES, linked, shortScope } from './events.js';
import { coalesced, feed, on } from './feed.js';
import { operationButtons } from './operation.js';
import { Rows, Selection, cell, headRow } from './rows.js';
import { listening, liveEvents } from './vm.js';

/** @import {Host, Operation, Vm} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */

const ROW_HEIGHT = 36;

/** How many of a host's VMs listen, as text. @param {Host} host */
function hostListening(host) {
  const running = host.vms - host.deallocated;
  if (host.listening_unknown === running && running > 0) return '? unknown';
  const unknown = host.listening_unknown ? `, ${host.listening_unknown} unknown` : '';
  return `${host.listening} of ${running}${unknown}`;
}

/** @type {AsyncView} */
export async function hostsView({ signal, act }) {
  /** @type {Host[]} */
  let hosts = [];
  const status = h('span', { class: 'quiet', role: 'status' });
  async function load() {
    const { items, isCut } = await list('/v1/hosts', { signal });
    hosts = /** @type {Host[]} */ (items);
    const cut = isCut ? ' (the first are shown)' : '';
    setText(status, `${count(hosts.length, 'host')}, as of ${local(Date.now())}${cut}`);
    rows.show(hosts.length);
  }
  const selection = new Selection(() => drawBulk());
  const bulk = h('div', { class: 'group' });
  const drawBulk = () =>
    fill(
      bulk,
      selection.ids.size > 0 && h('span', {}, `${selection.ids.size} selected`),
      selection.ids.size > 0 &&
        h(
          'button',
          {
            type: 'button',
            class: 'primary',
            onclick: () => act({ kind: 'hosts', hosts: [...selection.ids], verb: 'maintain/reboot' }),
          },
          'Schedule…',
        ),
    );
  const rows = new Rows({
    label: 'Hosts',
    rowHeight: ROW_HEIGHT,
    empty: 'No VM has said which host it runs on.',
    head: headRow([
      ['pick', ''],
      ['name', 'Host'],
      ['ud', 'VMs'],
      ['ud', 'Scopes'],
      ['listening', 'Listening'],
      ['count', 'Events'],
      ['waits', 'State and operations'],
    ]),
    make: () => {
      const parts = {
        pick: selection.box(),
        link: h('a'),
        vms: cell('ud'),
        scopes: cell('ud'),
        listening: cell('listening'),
        count: cell('count'),
        operations: cell('waits'),
      };
      return {
        element: h(
          'div',
          { class: 'table-row host-row' },
          cell('pick', parts.pick),
          cell('name', parts.link),
          parts.vms,
          parts.scopes,
          parts.listening,
          parts.count,
          parts.operations,
        ),
        parts,
      };
    },
    fill: (parts, index) => {
      const host = hosts[index];
      selection.fill(parts.pick, host.host, host.host);
      setText(parts.link, host.host);
      parts.link.setAttribute('href', `#/hosts/${encodeURIComponent(host.host)}`);
      setText(parts.vms, String(host.vms));
      setText(parts.scopes, String(host.scopes));
      setText(parts.listening, hostListening(host));
      setText(parts.count, host.events ? String(host.events) : '');
      const open = host.operations.length ? count(host.operations.length, 'open operation') : '';
      setText(parts.operations, [host.state === 'ok' ? '' : host.state, open].filter(Boolean).join(', '));
    },
    open: (index) => {
      location.hash = `#/hosts/${encodeURIComponent(hosts[index].host)}`;
    },
  });
  rows.scroller.classList.add('table', 'hosts');
  signal.addEventListener('abort', () => rows.close());
  const reload = coalesced(() =>
    load().catch((/** @type {Error} */ error) => setText(status, error.message)),
  );
  on('events', reload, signal);
  on('state', () => feed.state === 'live' && reload(), signal);
  addEventListener('acted', () => (selection.ids.clear(), drawBulk(), void reload()), { signal });
  await load();
  const element = h(
    'div',
    { class: 'view fill' },
    h('div', { class: 'title-row' }, h('h1', {}, 'Hosts'), status),
    h('div', { class: 'tools' }, bulk),
    rows.element,
  );
  return { element, title: 'Hosts' };
}

/** @type {AsyncView} */
export async function hostView({ argument, session, signal, act }) {
  const facts = h('dl', { class: 'facts' }),
    vmList = h('div', {}),
    operations = h('div', {});
  let shown = '';
  async function draw() {
    /** @type {[Host, { items: Vm[] }, { items: Operation[] }]} */
    const [host, vms, open] = await Promise.all([
      get(at`/v1/hosts/${argument}`, signal),
      list(at`/v1/vms?host=${argument}`, { signal }),
      list(at`/v1/operations?host=${argument}`, { signal }),
    ]);
    const rows = [
      ['State', host.state],
      ['VMs', `${host.vms}${host.deallocated ? `, ${host.deallocated} deallocated` : ''}`],
      ['Scopes', String(host.scopes)],
      ['Listening', hostListening(host)],
      ['Live events', String(host.events)],
    ];
    fill(facts, rows.map(([title, value]) => [h('dt', {}, title), h('dd', {}, value)]).flat());
    // Unchanged buttons keep the focus.
    const text = JSON.stringify(open.items);
    if (text !== shown)
      fill(
        operations,
        open.items.length === 0
          ? h('p', { class: 'quiet' }, 'No open operation.')
          : h(
              'ul',
              { class: 'event-list' },
              open.items.map((one) =>
                h(
                  'li',
                  {},
                  h('a', { href: `#/operations/${one.id}` }, CAUSES[one.cause] ?? one.cause),
                  h(
                    'span',
                    {},
                    one.progress.started > 0
                      ? 'started'
                      : one.not_before
                        ? `not before ${local(Date.parse(one.not_before))}, ${relative(Date.parse(one.not_before))}`
                        : 'at once',
                  ),
                  h(
                    'span',
                    {},
                    `${one.progress.approved} of ${count(one.progress.events, 'event')} approved, ${one.progress.started} started`,
                  ),
                  one.waits_for && h('span', { class: 'bad' }, 'blocked: waits for ', linked(one.waits_for)),
                  operationButtons(one, session, act),
                ),
              ),
            ),
      );
    shown = text;
    fill(
      vmList,
      h(
        'table',
        {},
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['VM', 'Scope', 'UD', 'Listening', 'Events'].map((text) => h('th', {}, text)),
          ),
        ),
        h(
          'tbody',
          {},
          vms.items
            .slice(0, 200)
            .map((vm) =>
              h(
                'tr',
                {},
                h('td', {}, h('a', { href: `#/vms/${vm.id}` }, vm.name)),
                h('td', {}, shortScope(vm.scope)),
                h('td', {}, String(vm.update_domain)),
                h('td', { class: vm.listening === 'no' ? 'bad' : '' }, listening(vm)),
                h('td', {}, String(vm.events.length || '')),
              ),
            ),
        ),
      ),
      vms.items.length > 200 &&
        h(
          'p',
          {},
          h('a', { href: `#/fleet?host=${encodeURIComponent(argument)}` }, `all ${vms.items.length}`),
        ),
    );
  }
  await draw();
  const again = coalesced(async () => {
    if (!signal.aborted) await draw();
  });
  on('events', again, signal);
  on('state', () => feed.state === 'live' && again(), signal);
  addEventListener('acted', again, { signal });
  const verbs = [
    ['maintain/reboot', 'Maintain…'],
    ['degraded', 'Degraded…'],
    ['failed', 'Failed…'],
  ];
  const element = h(
    'div',
    { class: 'view' },
    h(
      'div',
      { class: 'title-row' },
      h('h1', {}, `Host ${argument}`),
      h(
        'div',
        { class: 'actions' },
        verbs.map(([verb, text], n) =>
          h(
            'button',
            {
              type: 'button',
              class: n === 0 ? 'primary' : '',
              onclick: () => act({ kind: 'hosts', hosts: [argument], verb }),
            },
            text,
          ),
        ),
      ),
    ),
    h(
      'div',
      { class: 'columns' },
      h(
        'section',
        { 'aria-label': 'Host' },
        h('h2', {}, 'Host'),
        facts,
        h('h2', {}, 'Operations'),
        operations,
      ),
      h(
        'div',
        {},
        h(
          'section',
          { 'aria-label': 'Events' },
          h('h2', {}, 'Planned'),
          liveEvents((event) => event.resources.some((one) => one.host === argument), signal),
        ),
        h('section', { 'aria-label': 'VMs' }, h('h2', {}, 'VMs'), vmList),
      ),
    ),
  );
  return { element, title: `Host ${argument}` };
}
