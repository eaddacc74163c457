// For operators: tokens, and the audit trail.

import { keyOfBody } from './act.js';
import { change, list } from './api.js';
import { DAY, copyButton, fill, h, now, relative, time } from './dom.js';
import { actorText, factText, shortScope } from './events.js';

/** @import {AuditEntry, NewToken, Token} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */

const ENTRIES_MAX = 300;

/** @param {HTMLElement} input @param {string} label */
const field = (input, label) => h('div', { class: 'field' }, h('label', { for: input.id }, label), input);

/** @type {AsyncView} */
export async function tokensView({ signal, act }) {
  const table = h('div', {}),
    made = h('div', { 'aria-live': 'polite' });
  async function draw() {
    const { items } = await list('/v1/tokens', { signal });
    fill(
      table,
      h(
        'table',
        { class: 'wide' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            ['Token', 'Roles', 'Created', 'Expires', 'Last used', ''].map((text) => h('th', {}, text)),
          ),
        ),
        h(
          'tbody',
          {},
          /** @type {Token[]} */ (items).map((token) =>
            h(
              'tr',
              {},
              h('td', {}, token.name),
              h(
                'td',
                { class: 'wrap' },
                token.grants.map(({ role, path }) => `${role} on ${path}`).join(', '),
              ),
              h(
                'td',
                {},
                time(token.created_at),
                token.created_by && h('span', { class: 'quiet' }, ` by ${token.created_by}`),
              ),
              h(
                'td',
                { class: token.expired ? 'bad' : '' },
                token.expires_at
                  ? `${token.expired ? 'expired ' : ''}${relative(Date.parse(token.expires_at))}`
                  : 'never',
              ),
              h('td', {}, token.last_used_at ? relative(Date.parse(token.last_used_at)) : '–'),
              h(
                'td',
                {},
                h(
                  'button',
                  { type: 'button', class: 'small', onclick: () => act({ kind: 'revoke', token }) },
                  'Revoke…',
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }

  const name = h('input', {
    id: 'token-name',
    required: true,
    pattern: '[A-Za-z0-9._\\-]{1,64}',
    title: 'letters, digits, dot, underscore and hyphen; 64 at most',
    spellcheck: 'false',
  });
  const role = h(
    'select',
    { id: 'token-role' },
    ['viewer', 'tenant', 'operator'].map((one) => h('option', { value: one }, one)),
  );
  const path = h('input', { id: 'token-path', value: '/', required: true, spellcheck: 'false' });
  const days = h('input', { id: 'token-days', type: 'number', min: 1, max: 3650, placeholder: 'never' });
  const create = h('button', { type: 'submit', class: 'primary' }, 'Create');
  const key = keyOfBody();
  /** When the token of a form expires; a repetition asks for the same time. */
  let expires_at = '';
  [name, role, path, days].forEach((input) =>
    input.addEventListener('input', () => {
      expires_at = '';
    }),
  );
  const form = h(
    'form',
    {
      class: 'tools',
      onsubmit: async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        // A second click would replace the secret, which is shown once.
        if (create.disabled) return;
        create.disabled = true;
        if (days.value) expires_at ||= new Date(now() + Number(days.value) * DAY).toISOString();
        const grants = [{ role: role.value, path: path.value }];
        const body = { name: name.value, grants, ...(expires_at && { expires_at }) };
        try {
          /** @type {NewToken} */
          const token = await change('POST', '/v1/tokens', body, { key: key(body) });
          const secret = h('input', {
            readonly: true,
            value: token.secret,
            'aria-label': `Secret of ${token.name}`,
            class: 'secret',
            onfocus: () => secret.select(),
          });
          fill(
            made,
            h(
              'p',
              {},
              `Token ${token.name} was created. This is the only time that its secret is shown: store it now.`,
            ),
            h(
              'p',
              { class: 'copy' },
              secret,
              copyButton(() => token.secret),
            ),
          );
          secret.focus();
          name.value = '';
          void draw().catch(() => {});
        } catch (error) {
          fill(made, h('p', { class: 'problem', role: 'alert' }, /** @type {Error} */ (error).message));
        } finally {
          create.disabled = false;
        }
      },
    },
    field(name, 'Name'),
    field(role, 'Role'),
    field(path, 'on'),
    field(days, 'Expires in days'),
    create,
  );
  addEventListener('acted', () => void draw().catch(() => {}), { signal });
  await draw();
  return { title: 'Tokens', element: h('div', { class: 'view' }, h('h1', {}, 'Tokens'), form, made, table) };
}

/** @type {AsyncView} */
export async function auditView({ query, setQuery, signal }) {
  const table = h('div', {});
  const outcome = h(
    'select',
    { id: 'audit-outcome' },
    [
      ['', 'all'],
      ['changed', 'changes'],
      ['refused', 'refusals'],
    ].map(([value, text]) => h('option', { value, selected: query.outcome === value }, text)),
  );
  const days = h(
    'select',
    { id: 'audit-days' },
    [
      ['1', 'a day'],
      ['7', 'a week'],
      ['30', '30 days'],
    ].map(([value, text]) => h('option', { value, selected: (query.days ?? '1') === value }, text)),
  );
  const actor = h('input', { id: 'audit-actor', type: 'search', value: query.actor ?? '' });
  let turn = 0;
  const redraw = () =>
    void draw().catch((/** @type {Error} */ error) =>
      fill(table, h('p', { class: 'problem' }, error.message)),
    );
  async function draw() {
    setQuery({ days: days.value === '1' ? '' : days.value, outcome: outcome.value, actor: actor.value });
    const filters = new URLSearchParams(
      Object.entries({
        since: new Date(now() - Number(days.value) * DAY).toISOString(),
        outcome: outcome.value,
        actor: actor.value.trim(),
      }).filter(([, value]) => value),
    );
    const mine = (turn += 1);
    const { items, isCut } = await list(`/v1/audit?order=newest&${filters}`, { max: ENTRIES_MAX, signal });
    if (mine !== turn) return;
    const entries = /** @type {AuditEntry[]} */ (items).slice(0, ENTRIES_MAX);
    fill(
      table,
      entries.length === 0
        ? h('p', { class: 'quiet' }, 'Nothing in this time.')
        : h(
            'table',
            { class: 'wide', tabindex: 0 },
            h(
              'thead',
              {},
              h(
                'tr',
                {},
                ['When', 'Who', 'From', 'What', 'Where'].map((text) => h('th', {}, text)),
              ),
            ),
            h(
              'tbody',
              {},
              entries.map((entry) =>
                h(
                  'tr',
                  {},
                  h('td', {}, time(entry.at)),
                  h('td', {}, actorText(entry)),
                  h('td', {}, entry.from ?? ''),
                  h(
                    'td',
                    { class: `wrap${entry.outcome === 'refused' ? ' bad' : ''}` },
                    entry.event
                      ? h('a', { href: `#/events/${entry.event}` }, factText(entry))
                      : factText(entry),
                    `${entry.count > 1 ? ` (${entry.count} times)` : ''}${refusal(entry)}`,
                  ),
                  h(
                    'td',
                    { class: 'wrap' },
                    [entry.scope && shortScope(entry.scope), entry.vms?.slice(0, 3).join(', ')]
                      .filter(Boolean)
                      .join(': '),
                  ),
                ),
              ),
            ),
          ),
      isCut &&
        h('p', { class: 'quiet' }, `The newest ${ENTRIES_MAX} are shown; “notbefore audit” lists all.`),
    );
  }
  [days, outcome, actor].forEach((input) => input.addEventListener('change', redraw));
  await draw();
  return {
    title: 'Audit',
    element: h(
      'div',
      { class: 'view' },
      h(
        'div',
        { class: 'title-row' },
        h('h1', {}, 'Audit'),
        h('button', { type: 'button', class: 'small', onclick: redraw }, 'Refresh'),
      ),
      h('div', { class: 'tools' }, field(days, 'Past'), field(outcome, 'Show'), field(actor, 'Actor')),
      table,
    ),
  };
}

/** @param {AuditEntry} entry */
function refusal(entry) {
  const detail = /** @type {any} */ (entry).detail ?? {};
  return detail.request ? `: ${detail.request} (${detail.code ?? ''})` : '';
}
