// For operators: tokens, and the audit trail.

import { at, change, list, newKey } from './api.js';
import { DAY, fill, h, now, relative, time } from './dom.js';
import { actorText, factText, shortScope } from './events.js';

/** @import {AuditEntry, NewToken, Token} from 'notbefore-api' */
/** @import {AsyncView} from './app.js' */

const ENTRIES_MAX = 300;

/** @param {HTMLElement} input @param {string} label */
const field = (input, label) => h('div', { class: 'field' }, h('label', { for: input.id }, label), input);

/** @type {AsyncView} */
export async function tokensView({ signal, session }) {
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
                h('button', { type: 'button', class: 'small', onclick: () => void revoke(token) }, 'Revoke…'),
              ),
            ),
          ),
        ),
      ),
    );
  }

  /** @param {Token} token */
  async function revoke(token) {
    const own = token.name === session.token ? ' It is your own: you will be signed out.' : '';
    if (
      !confirm(
        `Revoke token ${token.name}? Requests with it are refused, and its sessions and streams end.${own}`,
      )
    )
      return;
    try {
      await change('DELETE', at`/v1/tokens/${token.name}`);
      fill(made);
      await draw();
    } catch (error) {
      fill(made, h('p', { class: 'problem' }, /** @type {Error} */ (error).message));
    }
  }

  const name = h('input', {
    id: 'token-name',
    required: true,
    pattern: '[A-Za-z0-9._\\-]{1,64}',
    spellcheck: 'false',
  });
  const role = h(
    'select',
    { id: 'token-role' },
    ['viewer', 'tenant', 'operator'].map((one) => h('option', { value: one }, one)),
  );
  const path = h('input', { id: 'token-path', value: '/', required: true, spellcheck: 'false' });
  const days = h('input', { id: 'token-days', type: 'number', min: 1, max: 3650, placeholder: 'never' });
  let key = newKey();
  const form = h(
    'form',
    {
      class: 'tools',
      onsubmit: async (/** @type {SubmitEvent} */ event) => {
        event.preventDefault();
        const expires_at = days.value ? new Date(now() + Number(days.value) * DAY).toISOString() : undefined;
        try {
          /** @type {NewToken} */
          const token = await change(
            'POST',
            '/v1/tokens',
            { name: name.value, grants: [{ role: role.value, path: path.value }], expires_at },
            { key },
          );
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
            secret,
          );
          secret.focus();
          name.value = '';
          await draw();
        } catch (error) {
          fill(made, h('p', { class: 'problem', role: 'alert' }, /** @type {Error} */ (error).message));
        }
        key = newKey();
      },
    },
    field(name, 'Name'),
    field(role, 'Role'),
    field(path, 'on'),
    field(days, 'Expires in days'),
    h('button', { type: 'submit', class: 'primary' }, 'Create'),
  );
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
  const actor = h('input', { id: 'audit-actor', type: 'search', value: query.actor ?? '' });
  async function draw() {
    setQuery({ outcome: outcome.value, actor: actor.value });
    const filters = new URLSearchParams(
      Object.entries({
        since: new Date(now() - DAY).toISOString(),
        outcome: outcome.value,
        actor: actor.value.trim(),
      }).filter(([, value]) => value),
    );
    /** @type {AuditEntry[]} */
    let entries = [];
    // The trail is sorted oldest first; the newest are wanted.
    const { items, isCut } = await list(`/v1/audit?${filters}`, { max: 5000, signal });
    entries = /** @type {AuditEntry[]} */ (items).slice(-ENTRIES_MAX).reverse();
    fill(
      table,
      entries.length === 0
        ? h('p', { class: 'quiet' }, 'Nothing in the past day.')
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
                    `${factText(entry)}${entry.count > 1 ? ` (${entry.count} times)` : ''}${refusal(entry)}`,
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
      isCut && h('p', { class: 'quiet' }, 'There are more; notbefore audit lists all.'),
    );
  }
  outcome.addEventListener('change', () => void draw());
  actor.addEventListener('change', () => void draw());
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
        h('span', { class: 'quiet' }, 'the past day'),
        h('button', { type: 'button', class: 'small', onclick: () => void draw() }, 'Refresh'),
      ),
      h('div', { class: 'tools' }, field(outcome, 'Show'), field(actor, 'Actor')),
      table,
    ),
  };
}

/** @param {AuditEntry} entry */
function refusal(entry) {
  const detail = /** @type {any} */ (entry).detail ?? {};
  return detail.request ? `: ${detail.request} (${detail.code ?? ''})` : '';
}
