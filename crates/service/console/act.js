// Actions on VMs, hosts and events. Each shows its plan first. A request that is sent again has the same
// Idempotency-Key, so that it takes effect once; a request that was changed has another.

import { Problem, at, change, get, newKey } from './api.js';
import { count, fill, h, local, relative, utc } from './dom.js';
import { CAUSES, shortScope } from './events.js';

/** @import {Event, HostsPlan, Operation, Plan, PlannedEvent, Session, Vm} from 'notbefore-api' */
/**
 * @typedef {{ kind: 'vms', vms: string[], cause: string }
 *   | { kind: 'hosts', hosts: string[], verb: string }
 *   | { kind: 'event', event: Event, verb: 'approve' | 'start' | 'cancel' | 'complete' | 'retry' }
 *   | { kind: 'operation', operation: Operation, verb: 'start' | 'cancel' | 'complete' }} Act
 */

/** Most VMs or hosts in one action. */
export const BULK_MAX = 100;
/** Most events of a plan that are listed. */
const PLAN_ROWS = 30;

const USER_CAUSES = ['user-restart', 'user-redeploy'];
const VM_CAUSES = [
  'user-restart',
  'user-redeploy',
  'deletion',
  'eviction',
  'host-freeze',
  'host-reboot',
  'host-redeploy',
  'live-migration',
  'predicted-failure',
  'host-failure',
];
/** @type {Record<string, string>} */
const HOST_VERBS = {
  'maintain/reboot': 'Maintenance: reboot',
  'maintain/freeze': 'Maintenance: freeze',
  'maintain/redeploy': 'Maintenance: redeploy',
  'maintain/live-migration': 'Maintenance: live migration',
  degraded: 'Degraded: redeploy the VMs',
  failed: 'Failed: reboot the VMs now',
};

/** Opens the dialog of an action. @param {Act} what @param {Session} session */
export function openAct(what, session) {
  if (what.kind === 'event') return eventDialog(what.event, what.verb);
  if (what.kind === 'operation') return operationDialog(what.operation, what.verb);
  return planDialog(what, session);
}

/** A dialog that closes by Escape, and removes itself. @param {string} title @param {...any} children */
function dialog(title, ...children) {
  const id = `dialog-${newKey()}`;
  const element = h('dialog', { 'aria-labelledby': id }, h('h2', { id }, title), ...children);
  element.addEventListener('close', () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** @param {unknown} error */
function failure(error) {
  const problem = error instanceof Problem ? error : new Problem(0, 'error', String(error));
  if (!problem.isOutcomeUnknown)
    return h(
      'p',
      { class: 'problem', role: 'alert' },
      `${problem.message}${problem.status ? ` (${problem.code})` : ''}`,
    );
  return h(
    'p',
    { class: 'problem', role: 'alert' },
    'It is not known whether this took effect: the service did not answer. Send it again: it is sent under the same key and happens once.',
  );
}

/**
 * Plan first, then the action.
 * @param {Extract<Act, { kind: 'vms' | 'hosts' }>} what
 * @param {Session} session
 */
function planDialog(what, session) {
  const isHosts = what.kind === 'hosts';
  const names = isHosts ? what.hosts : what.vms;
  const isOperator = session.grants.some((grant) => grant.role === 'operator');
  const input = h('textarea', {
    id: 'act-names',
    rows: Math.min(6, Math.max(1, names.length)),
    required: true,
    spellcheck: 'false',
    value: names.join('\n'),
    placeholder: isHosts ? 'one host a line' : 'one VM a line: its name, or the end of its path',
  });
  const choices = isHosts
    ? Object.entries(HOST_VERBS)
    : VM_CAUSES.filter((cause) => isOperator || USER_CAUSES.includes(cause) || cause === 'deletion').map(
        (cause) => /** @type {[string, string]} */ ([cause, CAUSES[cause]]),
      );
  const chosen = isHosts ? what.verb : what.cause;
  const select = h(
    'select',
    { id: 'act-what' },
    choices.map(([value, text]) => h('option', { value, selected: value === chosen }, text)),
  );
  const minutes = h('input', {
    type: 'number',
    id: 'act-minutes',
    min: 0,
    max: 500_000,
    step: 1,
    placeholder: 'usual notice',
  });
  const description = h('input', {
    type: 'text',
    id: 'act-description',
    maxlength: 512,
    placeholder: 'the usual text',
  });
  const planArea = h('div', { class: 'plan', 'aria-live': 'polite' });
  const confirm = h('button', { type: 'submit', class: 'primary', disabled: true }, 'Schedule');
  const form = h(
    'form',
    { method: 'dialog' },
    h('label', { for: 'act-names' }, isHosts ? 'Hosts' : 'VMs'),
    input,
    h('label', { for: 'act-what' }, 'Action'),
    select,
    h('label', { for: 'act-minutes' }, 'Not before, in minutes from now'),
    minutes,
    (isHosts || isOperator) && h('label', { for: 'act-description' }, 'Description that guests read'),
    (isHosts || isOperator) && description,
    h('h3', {}, 'Plan'),
    planArea,
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', onclick: () => box.close() }, 'Close'),
      confirm,
    ),
  );
  const box = dialog(isHosts ? 'Schedule for hosts' : 'Schedule for VMs', form);
  /** Sends what the plan showed. @type {(() => Promise<Operation[]>) | null} */
  let send = null;
  /** The key of the plan that is shown. */
  let key = newKey();
  let asked = 0;

  const common = () => ({
    ...(minutes.value !== '' && { in_seconds: Math.round(Number(minutes.value) * 60) }),
    ...(description.value && { description: description.value }),
  });

  async function plan() {
    const turn = (asked += 1);
    const list = [
      ...new Set(
        input.value
          .split(/[\n,]+/)
          .map((name) => name.trim())
          .filter(Boolean),
      ),
    ];
    send = null;
    key = newKey();
    confirm.disabled = true;
    if (list.length === 0)
      return fill(planArea, h('p', { class: 'quiet' }, `Name the ${isHosts ? 'hosts' : 'VMs'} first.`));
    if (list.length > BULK_MAX)
      return fill(
        planArea,
        h('p', { class: 'problem' }, `${list.length} are named; at most ${BULK_MAX} at a time.`),
      );
    try {
      const made = isHosts
        ? await planHosts(list, select.value, common())
        : await planVms(list, select.value, common());
      if (turn !== asked) return;
      fill(planArea, made.shown);
      send = made.send;
      confirm.disabled = false;
    } catch (error) {
      if (turn === asked) fill(planArea, failure(error));
    }
  }

  /** @param {string[]} list @param {string} cause @param {object} options */
  async function planVms(list, cause, options) {
    const vms = await Promise.all(list.map((name) => /** @type {Promise<Vm>} */ (get(at`/v1/vms/${name}`))));
    // The VMs as they are now: if one changes, the service refuses the action.
    const body = { cause, vms: vms.map((vm) => vm.id), revisions: vms.map((vm) => vm.revision), ...options };
    /** @type {Plan} */
    const made = await change('POST', '/v1/events', { ...body, dry_run: true });
    return {
      shown: [planText(made)],
      send: async () => [
        /** @type {Operation} */ (await change('POST', '/v1/events', body, { key, onRetry })),
      ],
    };
  }

  /** @param {string[]} hosts @param {string} what @param {object} options */
  async function planHosts(hosts, what, options) {
    const [verb, type] = what.split('/');
    const action = { ...(type && { type }), ...options };
    /** @type {HostsPlan} */
    const made = await change('POST', '/v1/hosts/plan', { hosts, verb, action });
    const waits = made.waits.map((wait) =>
      h(
        'p',
        {},
        `${wait.host} waits for ${wait.waits_for.join(', ')}: they share ${wait.scopes.map(shortScope).join(', ')}.`,
      ),
    );
    const shown = [
      ...made.hosts.map((one) =>
        h('div', {}, made.hosts.length > 1 && h('h4', {}, one.host ?? ''), planText(one)),
      ),
      ...waits,
    ];
    const sendAll = async () => {
      /** @type {Operation[]} */
      const done = [];
      for (const one of made.hosts) {
        // The VMs of the plan, and no others.
        const vms = one.events
          .filter((event) => !event.refused)
          .flatMap((event) => event.resources.map((resource) => resource.vm));
        try {
          done.push(
            await change(
              'POST',
              at`/v1/hosts/${one.host ?? ''}/${verb}`,
              { ...action, vms },
              { key: `${key}-${done.length}`, onRetry },
            ),
          );
        } catch (error) {
          if (error instanceof Problem && done.length)
            error.message = `Host ${one.host}: ${error.message} Already scheduled: ${done.map((operation) => operation.host).join(', ')}.`;
          throw error;
        }
      }
      return done;
    };
    return { shown, send: sendAll };
  }

  const onRetry = () => fill(confirm, 'Sending again…');

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (!send) return;
    confirm.disabled = true;
    fill(confirm, 'Sending…');
    try {
      const operations = await send();
      const links = operations.flatMap((operation) =>
        operation.targets.map((target) =>
          h(
            'li',
            {},
            h(
              'a',
              { href: `#/events/${target.event}`, onclick: () => box.close() },
              `${shortScope(target.scope)}: ${target.resources.map((one) => one.name).join(', ')}`,
            ),
            ` ${target.status}${target.refused ? ` (${target.refused})` : ''}`,
          ),
        ),
      );
      fill(
        form,
        h('p', { role: 'status' }, `Done: ${count(links.length, 'event')}.`),
        h('ul', { class: 'plan' }, links.slice(0, PLAN_ROWS)),
        h(
          'div',
          { class: 'buttons' },
          h('button', { type: 'button', class: 'primary', onclick: () => box.close() }, 'Close'),
        ),
      );
      form.querySelector('button')?.focus();
    } catch (error) {
      fill(confirm, 'Send again');
      confirm.disabled = false;
      planArea.append(failure(error));
      // The scope changed since the plan: show the plan of now.
      if (error instanceof Problem && error.status === 412) void plan();
    }
  });
  let timer = 0;
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(plan, 250);
  };
  [input, minutes, description].forEach((field) => field.addEventListener('input', later));
  select.addEventListener('change', plan);
  void plan();
  if (names.length === 0) input.focus();
  else select.focus();
}

/** @param {Plan} plan */
function planText(plan) {
  const silent = plan.vms - plan.listening - plan.listening_unknown;
  const when = plan.not_before
    ? `not before ${local(Date.parse(plan.not_before))} (${relative(Date.parse(plan.not_before))})`
    : 'at once, without notice';
  const facts = [
    [
      'What',
      `${plan.type} of ${count(plan.vms, 'VM')} in ${count(plan.scopes, 'scope')}, ${count(plan.events.length, 'event')}`,
    ],
    ['When', when],
    [
      'Early start',
      plan.not_before
        ? plan.release === 'together'
          ? 'when every event is approved'
          : 'each event when it is approved'
        : null,
    ],
    [
      'Will hear',
      `${plan.listening} of ${count(plan.vms, 'VM')}${plan.listening_unknown ? `; ${plan.listening_unknown} unknown, the service has just started` : ''}`,
    ],
    [
      'Will not hear',
      silent > 0
        ? `${plan.silent.slice(0, 5).map(shortScope).join(', ')}${silent > 5 ? ` and ${silent - 5} more` : ''}`
        : null,
    ],
    ['Skipped', plan.deallocated ? `${count(plan.deallocated, 'deallocated VM')}` : null],
    [
      'Note',
      plan.operations.length
        ? `${count(plan.operations.length, 'operation')} on this host is still open`
        : null,
    ],
  ].filter(([, text]) => text);
  const row = (/** @type {PlannedEvent} */ event) =>
    h(
      'tr',
      {},
      h('td', {}, shortScope(event.scope)),
      h('td', {}, String(event.update_domain)),
      h(
        'td',
        {},
        event.resources
          .slice(0, 4)
          .map((one) => one.name)
          .join(', ') + (event.resources.length > 4 ? ` and ${event.resources.length - 4} more` : ''),
      ),
      h('td', {}, `${event.listening} of ${event.resources.length}`),
      h(
        'td',
        {},
        event.refused
          ? `refused: ${event.refused_because ?? event.refused}`
          : event.starts_because
            ? `starts at once: ${event.starts_because}`
            : event.waits_for
              ? `waits for ${event.waits_for}`
              : '',
      ),
    );
  return h(
    'div',
    {},
    h(
      'dl',
      { class: 'facts' },
      facts
        .map(([name, text]) => [
          h('dt', {}, name),
          h(
            'dd',
            {
              title: name === 'When' && plan.not_before ? `${utc(Date.parse(plan.not_before))} (UTC)` : null,
            },
            text,
          ),
        ])
        .flat(),
    ),
    h(
      'table',
      { tabindex: 0 },
      h(
        'thead',
        {},
        h(
          'tr',
          {},
          ['Scope', 'UD', 'VMs', 'Listening', ''].map((name) => h('th', {}, name)),
        ),
      ),
      h('tbody', {}, plan.events.slice(0, PLAN_ROWS).map(row)),
    ),
    plan.events.length > PLAN_ROWS &&
      h('p', { class: 'quiet' }, `and ${count(plan.events.length - PLAN_ROWS, 'more event')}`),
  );
}

/** @param {Operation} operation @param {'start' | 'cancel' | 'complete'} verb */
function operationDialog(operation, verb) {
  const { events, approved, started } = operation.progress;
  const texts = {
    start: ['Start operation now', 'All its events start now, without the approvals that are missing.'],
    cancel: ['Cancel operation', 'Its events that have not started will not happen.'],
    complete: ['Complete operation', 'Reports that all its events were carried out.'],
  };
  const [title, text] = texts[verb];
  const scopes = [...new Set(operation.targets.map((target) => shortScope(target.scope)))];
  askDialog(title, at`/v1/operations/${operation.id}/${verb}`, [
    `${CAUSES[operation.cause] ?? operation.cause}${operation.host ? ` of host ${operation.host}` : ''}: ${count(events, 'event')} in ${scopes.slice(0, 5).join(', ')}; ${approved} approved, ${started} started.`,
    text,
  ]);
}

/** Makes keys: the same one for the same body. */
function keyOfBody() {
  let text = '',
    key = '';
  return (/** @type {unknown} */ body) => {
    const next = JSON.stringify(body ?? null);
    if (next !== text) [text, key] = [next, newKey()];
    return key;
  };
}

/**
 * A question, and a request that happens once.
 * @param {string} title
 * @param {string} path
 * @param {string[]} texts
 * @param {HTMLElement[]} [fields]
 * @param {() => unknown} [body]
 */
function askDialog(title, path, texts, fields = [], body = () => undefined) {
  const key = keyOfBody();
  const message = h('div', {});
  const confirm = h('button', { type: 'submit', class: 'primary' }, title);
  const form = h(
    'form',
    { method: 'dialog' },
    texts.map((text) => h('p', {}, text)),
    fields,
    message,
    h(
      'div',
      { class: 'buttons' },
      h('button', { type: 'button', onclick: () => box.close() }, 'Close'),
      confirm,
    ),
  );
  const box = dialog(`${title}?`, form);
  form.addEventListener('submit', async (submit) => {
    submit.preventDefault();
    confirm.disabled = true;
    try {
      const sent = body();
      await change('POST', path, sent, { key: key(sent) });
      box.close();
      dispatchEvent(new CustomEvent('acted'));
    } catch (error) {
      confirm.disabled = false;
      fill(message, failure(error));
    }
  });
  confirm.focus();
}

/** @param {Event} event @param {string} verb */
function eventDialog(event, verb) {
  /** @type {Record<string, [string, string]>} */
  const texts = {
    approve: [
      'Approve',
      'The event may then start before its NotBefore time. The approval counts for all its VMs and cannot be taken back.',
    ],
    start: ['Start now', 'The event starts now, without approval of its guests.'],
    cancel: ['Cancel event', 'The event will not happen.'],
    complete: ['Complete', 'Reports that the event was carried out. It leaves the documents of its guests.'],
    retry: ['Retry', 'Runs the commands again that failed.'],
  };
  const [title, text] = texts[verb];
  const hosts =
    verb === 'complete' && event.type === 'Redeploy'
      ? event.resources.map((one) => ({
          name: one.name,
          input: h('input', { type: 'text', id: `host-${one.vm}`, placeholder: one.host ?? 'host' }),
        }))
      : [];
  const notice = event.not_before
    ? `NotBefore is ${local(Date.parse(event.not_before))}, ${relative(Date.parse(event.not_before))}.`
    : '';
  const unread = event.unread_by?.length ? ` Not read by ${event.unread_by.slice(0, 5).join(', ')}.` : '';
  const what = `${event.type} of ${event.resources
    .map((one) => one.name)
    .slice(0, 5)
    .join(', ')} in ${shortScope(event.scope)}. ${notice}${unread}`;
  const fields = hosts.flatMap(({ name, input }) => [
    h('label', { for: input.id }, `New host of ${name} (optional)`),
    input,
  ]);
  const moved = () =>
    Object.fromEntries(
      hosts.filter(({ input }) => input.value).map(({ name, input }) => [name, input.value]),
    );
  askDialog(title, at`/v1/events/${event.id}/${verb}`, [what, text], fields, () =>
    verb === 'complete' ? { hosts: moved() } : undefined,
  );
}
