// The fleet: VMs with their scopes and hosts, who listens, one VM with its log, hosts and one host.

import { BULK_MAX } from './act.js';
import { at, get, list } from './api.js';
import { count, fill, h, local, relative, setText, time, utc } from './dom.js';
import {
  CAUSES,
  SYMBOLS,
  byUrgency,
  isFullOperator,
  localTimes,
  may,
  shortScope,
  stageBadge,
  vmNames,
  when,
} from './events.js';
import { feed, on } from './feed.js';
import { Rows } from './rows.js';

/** @import {Event, Fact, Host, Operation, Scope, Vm, VmLog, VmLogEntry} from 'notbefore-api' */
/** @import {AsyncView, View} from './app.js' */
/** @import {Child} from './dom.js' */

const ROW_HEIGHT = 36;
/** Most VMs that are read. */
const VMS_MAX = 20_000;

/** @param {string} name @param {...any} children */
const cell = (name, ...children) => h('div', { class: `cell ${name}`, role: 'gridcell' }, ...children);
/** @param {[string, string][]} columns */
const headRow = (columns) =>
  h(
    'div',
    { class: 'table-row head', role: 'row' },
    columns.map(([name, text]) => h('div', { class: `cell ${name}`, role: 'columnheader' }, text)),
  );
/** @param {Vm} vm */
const listening = (vm) =>
  vm.state === 'deallocated'
    ? '– deallocated'
    : vm.listening === 'yes'
      ? '● listens'
      : vm.listening === 'no'
        ? '○ silent'
        : '? unknown';

/** @type {View} */
export function fleetView(context) {
  return context.query.by === 'scope' ? scopesView(context) : vmsView(context);
}

/** The choice between VMs and scopes. @param {string} chosen */
const by = (chosen) =>
  h(
    'nav',
    { class: 'tabs', 'aria-label': 'Fleet by' },
    [
      ['', 'VMs'],
      ['scope', 'Scopes'],
    ].map(([value, text]) =>
      h(
        'a',
        { href: value ? `#/fleet?by=${value}` : '#/fleet', 'aria-current': value === chosen ? 'page' : null },
        text,
      ),
    ),
  );

/** @type {AsyncView} */
async function scopesView({ signal }) {
  /** @type {[{ items: Scope[] }, { items: Vm[] }]} */
  const [{ items: scopes }, { items: vms }] = await Promise.all([
    list('/v1/scopes', { signal }),
    list('/v1/vms', { max: VMS_MAX, signal }),
  ]);
  /** @type {Map<string, Vm[]>} */
  const members = new Map();
  vms.forEach((vm) => {
    const known = members.get(vm.scope);
    if (known) known.push(vm);
    else members.set(vm.scope, [vm]);
  });
  const rows = new Rows({
    label: 'Scopes',
    rowHeight: ROW_HEIGHT,
    empty: 'No scopes.',
    head: headRow([
      ['name', 'Scope'],
      ['host', 'Kind'],
      ['ud', 'VMs'],
      ['ud', 'Update domains'],
      ['listening', 'Listening'],
      ['count', 'Events'],
    ]),
    make: () => {
      const parts = {
        link: h('a'),
        kind: cell('host'),
        vms: cell('ud'),
        domains: cell('ud'),
        listening: cell('listening'),
        count: cell('count'),
      };
      return {
        element: h(
          'div',
          { class: 'table-row scope-row' },
          cell('name', parts.link),
          parts.kind,
          parts.vms,
          parts.domains,
          parts.listening,
          parts.count,
        ),
        parts,
      };
    },
    fill: (parts, index) => {
      const scope = scopes[index],
        own = (members.get(scope.path) ?? []).filter((vm) => vm.state === 'running');
      const heard = own.filter((vm) => vm.listening === 'yes').length;
      setText(parts.link, shortScope(scope.path));
      parts.link.setAttribute('href', `#/fleet?scope=${encodeURIComponent(scope.path)}`);
      setText(parts.kind, scope.kind);
      setText(parts.vms, String(scope.vms));
      setText(parts.domains, String(new Set(own.map((vm) => vm.update_domain)).size));
      setText(parts.listening, `${heard} of ${own.length}`);
      parts.listening.classList.toggle('bad', heard < own.length);
      setText(parts.count, scope.events ? String(scope.events) : '');
    },
    open: (index) => {
      location.hash = `#/fleet?scope=${encodeURIComponent(scopes[index].path)}`;
    },
  });
  rows.scroller.classList.add('table', 'scopes');
  signal.addEventListener('abort', () => rows.close());
  requestAnimationFrame(() => rows.show(scopes.length));
  return {
    element: h(
      'div',
      { class: 'view fill' },
      h(
        'div',
        { class: 'title-row' },
        h('h1', {}, 'Fleet'),
        by('scope'),
        h('span', { class: 'quiet' }, `${count(scopes.length, 'scope')}, as of ${local(Date.now())}`),
      ),
      rows.element,
    ),
    title: 'Scopes',
  };
}

/** @type {View} */
function vmsView({ query, setQuery, signal, session, act }) {
  /** @type {Vm[]} */
  let vms = [];
  /** @type {Vm[]} */
  let shown = [];
  let readAt = Date.now(),
    isCut = false,
    isLoading = true;
  /** @type {Set<string>} */
  const selected = new Set();
  const search = h('input', {
    type: 'search',
    id: 'search',
    placeholder: 'name, scope, host or address',
    value: query.q ?? '',
  });
  const only = h(
    'select',
    { id: 'only' },
    [
      ['', 'all'],
      ['yes', 'that listen'],
      ['no', 'that are silent'],
      ['events', 'with events'],
      ['deallocated', 'deallocated'],
    ].map(([value, text]) => h('option', { value, selected: query.only === value }, text)),
  );
  const status = h('span', { class: 'quiet', role: 'status' });
  const bulk = h('div', { class: 'group' });
  const rows = new Rows({
    label: 'VMs',
    rowHeight: ROW_HEIGHT,
    empty: 'No VMs match.',
    head: headRow([
      ['pick', ''],
      ['name', 'VM'],
      ['scope', 'Scope'],
      ['ud', 'UD'],
      ['host', 'Host'],
      ['listening', 'Listening'],
      ['count', 'Events'],
      ['addresses', 'Addresses'],
    ]),
    make: () => {
      const parts = {
        pick: h('input', { type: 'checkbox' }),
        link: h('a'),
        scope: cell('scope'),
        ud: cell('ud'),
        host: h('a'),
        listening: cell('listening'),
        count: cell('count'),
        addresses: cell('addresses'),
      };
      parts.pick.addEventListener('change', () => {
        const id = parts.pick.dataset.vm ?? '';
        if (parts.pick.checked) selected.add(id);
        else selected.delete(id);
        drawBulk();
      });
      return {
        element: h(
          'div',
          { class: 'table-row vm-row' },
          cell('pick', parts.pick),
          cell('name', parts.link),
          parts.scope,
          parts.ud,
          cell('host', parts.host),
          parts.listening,
          parts.count,
          parts.addresses,
        ),
        parts,
      };
    },
    fill: (parts, index) => {
      const vm = shown[index];
      parts.pick.dataset.vm = vm.id;
      parts.pick.checked = selected.has(vm.id);
      parts.pick.setAttribute('aria-label', `Select ${vm.name}`);
      setText(parts.link, vm.name);
      parts.link.setAttribute('href', `#/vms/${vm.id}`);
      parts.link.title = vm.path;
      setText(parts.scope, shortScope(vm.scope));
      setText(parts.ud, String(vm.update_domain));
      setText(parts.host, vm.host ?? '–');
      if (vm.host && isFullOperator(session))
        parts.host.setAttribute('href', `#/hosts/${encodeURIComponent(vm.host)}`);
      else parts.host.removeAttribute('href');
      setText(parts.listening, listening(vm));
      parts.listening.classList.toggle('bad', vm.listening === 'no' && vm.state !== 'deallocated');
      parts.listening.title = vm.last_poll_at
        ? `last poll ${relative(Date.parse(vm.last_poll_at))} (${utc(Date.parse(vm.last_poll_at))} UTC)`
        : 'no poll since the service started';
      setText(parts.count, vm.events.length ? String(vm.events.length) : '');
      setText(parts.addresses, vm.addresses.join(', '));
    },
    open: (index) => {
      location.hash = `#/vms/${shown[index].id}`;
    },
  });
  rows.scroller.classList.add('table', 'fleet');

  function filter() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const kind = only.value,
      scope = (query.scope ?? '').toLowerCase(),
      host = query.host;
    shown = vms.filter((vm) => {
      if (scope && vm.scope.toLowerCase() !== scope) return false;
      if (host && vm.host !== host) return false;
      if (
        kind === 'events'
          ? vm.events.length === 0
          : kind === 'deallocated'
            ? vm.state !== 'deallocated'
            : kind && vm.listening !== kind
      )
        return false;
      const text = words.length ? `${vm.path} ${vm.host ?? ''} ${vm.addresses.join(' ')}`.toLowerCase() : '';
      return words.every((word) => text.includes(word));
    });
    rows.show(shown.length);
    setText(
      status,
      `${shown.length === vms.length ? count(vms.length, 'VM') : `${shown.length.toLocaleString()} of ${count(vms.length, 'VM')}`}${isLoading ? ', loading…' : `, as of ${local(readAt)}`}${isCut ? ' (the first are shown)' : ''}`,
    );
    drawBulk();
  }

  function drawBulk() {
    const chosen = vms.filter((vm) => selected.has(vm.id));
    if (chosen.length === 0) return fill(bulk);
    const open = (/** @type {string} */ cause) =>
      act({ kind: 'vms', vms: chosen.slice(0, BULK_MAX + 1).map((vm) => vm.path), cause });
    fill(
      bulk,
      h('span', {}, `${chosen.length} selected`),
      h('button', { type: 'button', class: 'primary', onclick: () => open('user-restart') }, 'Restart…'),
      h('button', { type: 'button', onclick: () => open('user-redeploy') }, 'Redeploy…'),
      h(
        'button',
        {
          type: 'button',
          onclick: () => {
            selected.clear();
            filter();
          },
        },
        'Clear',
      ),
    );
  }

  async function load() {
    isLoading = true;
    readAt = Date.now();
    const result = await list('/v1/vms', {
      max: VMS_MAX,
      signal,
      onPage: (items) => {
        vms = /** @type {Vm[]} */ (items);
        filter();
      },
    });
    isLoading = false;
    isCut = result.isCut;
    filter();
  }

  /** Reads the VMs of changed scopes again. @param {Fact[]} facts */
  async function refresh(facts) {
    const scopes = new Set(
      facts
        .filter((fact) => fact.scope && fact.type !== 'EventRead')
        .map((fact) => (fact.scope ?? '').toLowerCase()),
    );
    if (isLoading || scopes.size === 0) return;
    if (scopes.size > 5) return void load();
    for (const scope of scopes) {
      /** @type {Vm[]} */
      let now = [];
      try {
        now = (await list(`/v1/vms?scope=${encodeURIComponent(scope)}`, { signal })).items;
      } catch {
        /* The scope is gone. */
      }
      const first = vms.findIndex((vm) => vm.scope.toLowerCase() >= scope);
      const others = vms.filter((vm) => vm.scope.toLowerCase() !== scope);
      others.splice(first < 0 ? others.length : Math.min(first, others.length), 0, ...now);
      vms = others;
    }
    if (!signal.aborted) filter();
  }

  search.addEventListener('input', () => {
    setQuery({ q: search.value });
    filter();
  });
  only.addEventListener('change', () => {
    setQuery({ only: only.value });
    filter();
  });
  on('facts', (facts) => void refresh(facts), signal);
  signal.addEventListener('abort', () => rows.close());
  void load().catch((error) => {
    if (!signal.aborted) setText(status, error.message);
  });
  const where = query.scope ? `scope ${shortScope(query.scope)}` : query.host ? `host ${query.host}` : '';
  const element = h(
    'div',
    { class: 'view fill' },
    h(
      'div',
      { class: 'title-row' },
      h('h1', {}, 'Fleet', where && h('small', {}, ` ${where} `, h('a', { href: '#/fleet' }, 'show all'))),
      by(''),
      status,
      h('button', { type: 'button', class: 'small', onclick: () => void load() }, 'Refresh'),
    ),
    h(
      'div',
      { class: 'tools' },
      h('div', { class: 'field' }, h('label', { for: 'search' }, 'Search'), search),
      h('div', { class: 'field' }, h('label', { for: 'only' }, 'VMs'), only),
      bulk,
    ),
    rows.element,
  );
  return { element, title: 'Fleet' };
}

/**
 * Live events of a filter, kept up to date.
 * @param {(event: Event) => boolean} isMeant
 * @param {AbortSignal} signal
 */
function liveEvents(isMeant, signal) {
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
                event.waits_for && h('span', { class: 'quiet' }, `waits for ${localTimes(event.waits_for)}`),
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

  async function draw() {
    /** @type {VmLog} */
    const entries = await get(at`/v1/vms/${argument}/log`, signal);
    const rows = /** @type {[string, any][]} */ ([
      ['Path', vm.path],
      ['State', vm.state],
      [
        'Listening',
        `${listening(vm)}${vm.last_poll_at ? `, last poll ${relative(Date.parse(vm.last_poll_at))} at api-version ${vm.last_poll_version ?? ''}` : ''}`,
      ],
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
    const verbs = /** @type {[string, string, boolean][]} */ ([
      ['user-restart', 'Restart…', may(session, 'tenant', vm.scope)],
      ['user-redeploy', 'Redeploy…', may(session, 'tenant', vm.scope)],
      ['eviction', 'Evict…', may(session, 'operator', vm.scope)],
      ['deletion', 'Delete…', may(session, 'tenant', vm.scope)],
    ]);
    fill(
      actions,
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
  on(
    'facts',
    async (/** @type {Fact[]} */ all) => {
      if (
        !all.some(
          (fact) =>
            fact.scope?.toLowerCase() === vm.scope.toLowerCase() &&
            fact.vms?.some((one) => one.toLowerCase() === vm.name.toLowerCase()),
        )
      )
        return;
      try {
        vm = await get(at`/v1/vms/${argument}`, signal);
        await draw();
      } catch {
        /* The VM is gone, or the view. */
      }
    },
    signal,
  );
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

/** @type {AsyncView} */
export async function hostsView({ signal, act }) {
  const { items, isCut } = await list('/v1/hosts', { signal });
  const hosts = /** @type {Host[]} */ (items);
  /** @type {Set<string>} */
  const selected = new Set();
  const bulk = h('div', { class: 'group' });
  const drawBulk = () =>
    fill(
      bulk,
      selected.size > 0 && h('span', {}, `${selected.size} selected`),
      selected.size > 0 &&
        h(
          'button',
          {
            type: 'button',
            class: 'primary',
            onclick: () => act({ kind: 'hosts', hosts: [...selected], verb: 'maintain/reboot' }),
          },
          'Schedule…',
        ),
    );
  const rows = new Rows({
    label: 'Hosts',
    rowHeight: ROW_HEIGHT,
    empty: 'No VM says which host it runs on.',
    head: headRow([
      ['pick', ''],
      ['name', 'Host'],
      ['ud', 'VMs'],
      ['ud', 'Scopes'],
      ['listening', 'Listening'],
      ['count', 'Events'],
      ['waits', 'Operations'],
    ]),
    make: () => {
      const parts = {
        pick: h('input', { type: 'checkbox' }),
        link: h('a'),
        vms: cell('ud'),
        scopes: cell('ud'),
        listening: cell('listening'),
        count: cell('count'),
        operations: cell('waits'),
      };
      parts.pick.addEventListener('change', () => {
        const id = parts.pick.dataset.host ?? '';
        if (parts.pick.checked) selected.add(id);
        else selected.delete(id);
        drawBulk();
      });
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
      parts.pick.dataset.host = host.host;
      parts.pick.checked = selected.has(host.host);
      parts.pick.setAttribute('aria-label', `Select ${host.host}`);
      setText(parts.link, host.host);
      parts.link.setAttribute('href', `#/hosts/${encodeURIComponent(host.host)}`);
      setText(parts.vms, String(host.vms));
      setText(parts.scopes, String(host.scopes));
      setText(parts.listening, `${host.listening} of ${host.vms - host.deallocated}`);
      setText(parts.count, host.events ? String(host.events) : '');
      setText(
        parts.operations,
        host.operations.length ? count(host.operations.length, 'open operation') : '',
      );
    },
    open: (index) => {
      location.hash = `#/hosts/${encodeURIComponent(hosts[index].host)}`;
    },
  });
  rows.scroller.classList.add('table', 'hosts');
  signal.addEventListener('abort', () => rows.close());
  requestAnimationFrame(() => rows.show(hosts.length));
  const element = h(
    'div',
    { class: 'view fill' },
    h(
      'div',
      { class: 'title-row' },
      h('h1', {}, 'Hosts'),
      h('span', { class: 'quiet' }, count(hosts.length, 'host'), isCut && ' (the first are shown)'),
    ),
    h('div', { class: 'tools' }, bulk),
    rows.element,
  );
  return { element, title: 'Hosts' };
}

/** @param {Operation} operation @returns {('start' | 'cancel' | 'complete')[]} */
function operationVerbs({ progress: { events, started } }) {
  return started === 0 ? ['start', 'cancel'] : started < events ? ['cancel', 'complete'] : ['complete'];
}

/** @type {AsyncView} */
export async function hostView({ argument, signal, act }) {
  const facts = h('dl', { class: 'facts' }),
    vmList = h('div', {}),
    operations = h('div', {});
  async function draw() {
    /** @type {[Host, { items: Vm[] }, { items: Operation[] }]} */
    const [host, vms, open] = await Promise.all([
      get(at`/v1/hosts/${argument}`, signal),
      list(at`/v1/vms?host=${argument}`, { signal }),
      list(at`/v1/operations?host=${argument}`, { signal }),
    ]);
    const rows = [
      ['VMs', `${host.vms}${host.deallocated ? `, ${host.deallocated} deallocated` : ''}`],
      ['Scopes', String(host.scopes)],
      ['Listening', `${host.listening} of ${host.vms - host.deallocated}`],
      ['Live events', String(host.events)],
    ];
    fill(facts, rows.map(([title, value]) => [h('dt', {}, title), h('dd', {}, value)]).flat());
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
                h('strong', {}, CAUSES[one.cause] ?? one.cause),
                h(
                  'span',
                  {},
                  one.not_before
                    ? `not before ${local(Date.parse(one.not_before))}, ${relative(Date.parse(one.not_before))}`
                    : 'at once',
                ),
                h(
                  'span',
                  {},
                  `${one.progress.approved} of ${count(one.progress.events, 'event')} approved, ${one.progress.started} started`,
                ),
                one.waits_for &&
                  h('span', { class: 'bad' }, `blocked: waits for ${localTimes(one.waits_for)}`),
                operationVerbs(one).map((verb) =>
                  h(
                    'button',
                    {
                      type: 'button',
                      class: 'small',
                      onclick: () => act({ kind: 'operation', operation: one, verb }),
                    },
                    { start: 'Start now…', cancel: 'Cancel…', complete: 'Complete…' }[verb],
                  ),
                ),
              ),
            ),
          ),
    );
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
  on('events', () => void draw().catch(() => {}), signal);
  addEventListener('acted', () => void draw().catch(() => {}), { signal });
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
