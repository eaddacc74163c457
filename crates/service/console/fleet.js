// The fleet: VMs or scopes, who listens, search, and actions on several VMs.

import { BULK_MAX } from './act.js';
import { Problem, list } from './api.js';
import { count, fill, h, local, relative, setText, utc } from './dom.js';
import { isFullOperator, shortScope } from './events.js';
import { feed, on } from './feed.js';
import { Rows, Selection, cell, headRow } from './rows.js';
import { listening } from './vm.js';

/** @import {Fact, Scope, Vm} from 'notbefore-api' */
/** @import {AsyncView, View} from './app.js' */

const ROW_HEIGHT = 36;
/** Most VMs that are read. */
const VMS_MAX = 20_000;

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
  let readAt = 0,
    isCut = false,
    isLoading = false,
    /** Something changed during a read. */
    isMissed = false,
    error = '';
  const selection = new Selection(() => drawBulk());
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
        pick: selection.box(),
        link: h('a'),
        scope: cell('scope'),
        ud: cell('ud'),
        host: h('a'),
        listening: cell('listening'),
        count: cell('count'),
        addresses: cell('addresses'),
      };
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
      selection.fill(parts.pick, vm.id, vm.name);
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
    const all = count(vms.length, 'VM');
    const number = shown.length === vms.length ? all : `${shown.length.toLocaleString()} of ${all}`;
    const read = isLoading ? 'loading…' : readAt ? `as of ${local(readAt)}` : '';
    setText(status, [number, read, isCut && 'the first are shown', error].filter(Boolean).join(', '));
    status.classList.toggle('bad', Boolean(error));
    setText(
      rows.emptyText,
      vms.length > 0 ? 'No VMs match.' : isLoading || error ? '' : 'The fleet has no VMs.',
    );
    drawBulk();
  }

  function drawBulk() {
    const chosen = vms.filter((vm) => selection.ids.has(vm.id));
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
            selection.ids.clear();
            filter();
          },
        },
        'Clear',
      ),
    );
  }

  async function load() {
    if (isLoading) return;
    isLoading = true;
    error = '';
    try {
      const result = await list('/v1/vms', {
        max: VMS_MAX,
        signal,
        // The first time, each page is shown as it comes.
        onPage: (items) => {
          if (readAt > 0) return;
          vms = /** @type {Vm[]} */ ([...items]);
          filter();
        },
      });
      vms = /** @type {Vm[]} */ (result.items);
      readAt = Date.now();
      isCut = result.isCut;
    } catch (failed) {
      error = /** @type {Error} */ (failed).message;
    } finally {
      isLoading = false;
    }
    if (signal.aborted) return;
    filter();
    if (isMissed) {
      isMissed = false;
      void load();
    }
  }

  /** Reads the VMs of changed scopes again. @param {Fact[]} facts */
  async function refresh(facts) {
    const scopes = new Set(
      facts
        .filter((fact) => fact.scope && fact.type !== 'EventRead')
        .map((fact) => (fact.scope ?? '').toLowerCase()),
    );
    if (scopes.size === 0) return;
    if (isLoading) {
      isMissed = true;
      return;
    }
    if (scopes.size > 5) return void load();
    for (const scope of scopes) {
      /** @type {Vm[]} */
      let now = [];
      try {
        now = (await list(`/v1/vms?scope=${encodeURIComponent(scope)}`, { signal })).items;
      } catch (failed) {
        // Only 404 says that the scope is gone.
        if (!(failed instanceof Problem && failed.status === 404)) {
          error = /** @type {Error} */ (failed).message;
          continue;
        }
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
  // After a lost connection, facts are missing.
  on('state', () => feed.state === 'live' && void load(), signal);
  addEventListener('acted', () => selection.ids.clear(), { signal });
  void load();
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
