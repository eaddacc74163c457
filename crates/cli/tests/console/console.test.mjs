// Tests of the console in Chromium, against a real service.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { cluster } from './cluster.mjs';
import { FLEET, Proxy, Service, axeSource, browser, run, signedIn, until, watchErrors } from './support.mjs';

/** Each test has a time limit; all of them together take about a minute. */
const LIMIT = { timeout: 90_000 };
let chrome;

before(async () => {
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
});

/** Runs a test with a service, a proxy and a browser context of its own. */
async function withService(flags, body, { fleet = FLEET } = {}) {
  const service = await Service.start('--always-give-notice', ...flags);
  const proxy = await Proxy.start(service);
  const context = await chrome.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    if (fleet) await service.fleet(fleet);
    await body({ service, proxy, context });
    for (const page of context.pages()) assert.deepEqual(page.errors ?? [], [], 'errors of the page');
  } finally {
    await context.close();
    await proxy.close();
    await service.close();
  }
}

/** With NOTBEFORE_PICTURES=DIRECTORY: where pictures of the nodes' view go. */
const PICTURES = process.env.NOTBEFORE_PICTURES;

/** Each view, with its title, has no serious finding and is not too wide, in light, dark and at phone width. */
async function checkLooks(page, url, views, whenShown = async () => {}) {
  const axe = axeSource();
  for (const [scheme, width] of [
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
  ]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 800 });
    for (const [view, title] of views) {
      await page.goto(`${url}/${view}`);
      await page.waitForFunction((text) => document.title === `${text} – notbefore`, title);
      await whenShown(`${scheme}-${width}`);
      // Evaluated by the debugger, which the page's policy does not concern.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() =>
        window.axe.run(document, { resultTypes: ['violations'] }),
      );
      const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
      const htmls = (nodes) => nodes.slice(0, 2).map((node) => node.html);
      const found = serious.map(({ id, nodes }) => `${id}: ${htmls(nodes).join(' ')}`);
      assert.deepEqual(found, [], `${view} ${scheme} ${width}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${view} at ${width} is ${wide} px too wide`);
    }
  }
}

const row = (page, text) => page.locator('.now .table .row:not([hidden])', { hasText: text });
const schedule = async (service, body) => (await service.api('POST', '/v1/events', body)).body;

test('files have a strict policy; scripts have an ETag, page and API are not stored', LIMIT, () =>
  withService([], async ({ service }) => {
    const page = await fetch(service.url);
    assert.equal(page.status, 200);
    const policy = page.headers.get('content-security-policy');
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ])
      assert.ok(policy.includes(part), policy);
    assert.ok(!policy.includes('unsafe'), policy);
    assert.equal(page.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(page.headers.get('cache-control'), 'no-store');
    const script = await fetch(`${service.url}/console/app.js`);
    const known = { 'If-None-Match': script.headers.get('etag') };
    assert.equal((await fetch(`${service.url}/console/app.js`, { headers: known })).status, 304);
    const { headers } = await service.api('GET', '/v1/status');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.ok(headers.get('content-security-policy').includes("frame-ancestors 'none'"));
  }),
);

test('sign-in by token and by link; the session ends with its token and survives a restart', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const page = await context.newPage();
    watchErrors(page);
    await page.goto(proxy.url);
    await page.getByLabel('Token').fill('nb_wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('unknown, was revoked or has expired').waitFor();
    const guest = JSON.parse(
      await service.cli('token', 'create', 'wall', '--role', 'viewer', '--on', '/', '--output', 'json'),
    );
    await page.getByLabel('Token').fill(guest.secret);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Now' }).waitFor();
    const [cookie] = await context.cookies();
    const port = new URL(service.url).port;
    assert.deepEqual(
      [cookie.name, cookie.httpOnly, cookie.sameSite, cookie.path],
      [`notbefore-${port}`, true, 'Strict', '/'],
    );
    assert.ok(!cookie.value.includes(guest.secret.slice(3, 20)), 'the cookie does not contain the token');

    // A restart keeps the session.
    await service.stop();
    await service.launch();
    await page.reload();
    await page.getByRole('heading', { name: 'Now' }).waitFor();
    await service.cli('token', 'revoke', 'wall');
    await page.getByText('Your session has ended').waitFor();

    // A link works once.
    const link = await service.cli('console');
    assert.match(link, /#code=[A-Za-z0-9_-]{43}$/);
    const fresh = await (await chrome.newContext()).newPage();
    await fresh.goto(link);
    await fresh.getByRole('heading', { name: 'Now' }).waitFor();
    assert.equal(new URL(fresh.url()).hash, '', 'the code leaves the address bar');
    await fresh.getByRole('button', { name: 'Sign out' }).click();
    await fresh.getByLabel('Token').waitFor();
    const other = await (await chrome.newContext()).newPage();
    await other.goto(link);
    await other.getByText('was used or has expired').waitFor();
    await Promise.all([fresh.context().close(), other.context().close()]);

    // Attempts are limited by address.
    const attempt = () =>
      fetch(`${service.url}/v1/sign-in`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Origin: service.url },
        body: '{"token":"x"}',
      });
    const statuses = [];
    for (let n = 0; n < 20; n += 1) statuses.push((await attempt()).status);
    assert.ok(statuses.includes(429), String(statuses));
  }),
);

test('requests of other sites and foreign hosts are refused', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    await signedIn(context, proxy.url, service.token);
    // A page on another port of the same host: the same site, another origin. The browser sends the cookie.
    const evil = http.createServer((_, response) => {
      response.setHeader('Content-Type', 'text/html');
      response.end('<h1>elsewhere</h1>');
    });
    await new Promise((done) => evil.listen(0, '127.0.0.1', done));
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${evil.address().port}/`);
    await page.evaluate(async (url) => {
      const attempt = async (path, init) => {
        try {
          await fetch(url + path, { credentials: 'include', mode: 'no-cors', ...init });
        } catch {
          /* The response is hidden from this page. */
        }
      };
      await attempt('/v1/vms/db/restart', {
        method: 'POST',
        body: '{}',
        headers: { 'Content-Type': 'text/plain' },
      });
      await attempt('/v1/vms', {});
      await attempt('/v1/vms/db/restart', {
        mode: 'cors',
        method: 'POST',
        body: '{}',
        headers: { 'Content-Type': 'application/json' },
      });
    }, proxy.url);
    evil.close();
    assert.deepEqual((await service.api('GET', '/v1/events')).body.items, [], 'no event was made');
    for (const request of ['POST /v1/vms/db/restart', 'GET /v1/vms']) {
      await until(`${request} in the audit trail`, async () => {
        const { items } = (await service.api('GET', '/v1/audit?outcome=refused')).body;
        return items.some(({ detail }) => detail.code === 'cross_site' && detail.request === request);
      });
    }
    // A name that resolves to this machine.
    const [host, port] = service.operator.split(':');
    const status = await new Promise((done) =>
      http.get({ host, port, path: '/', headers: { Host: 'evil.example' } }, (response) => {
        response.resume();
        done(response.statusCode);
      }),
    );
    assert.equal(status, 421);
  }),
);

test('a restart is planned, appears, is approved by its guest, starts and goes, without reload', LIMIT, () =>
  withService(['--driver', 'manual'], async ({ service, proxy, context }) => {
    await service.guestRequest('127.0.8.10');
    await service.guestRequest('127.0.8.11');
    const page = await signedIn(context, proxy.url, service.token, '#/fleet');
    const other = await context.newPage();
    watchErrors(other);
    await other.goto(`${proxy.url}/#/now`);
    await other.getByText('Live', { exact: true }).waitFor();
    await page.locator('.fleet .row', { hasText: 'web-0' }).locator('a').first().click();
    await page.getByRole('button', { name: 'Restart…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Reboot of 1 VM in 1 scope').waitFor();
    await dialog.getByText('1 of 1 VM', { exact: true }).waitFor();
    assert.deepEqual((await service.api('GET', '/v1/events')).body.items, [], 'the plan changes nothing');
    await dialog.getByRole('button', { name: 'Schedule' }).click();
    await dialog.getByText('Done: 1 event').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();

    // The other tab shows each change by itself.
    await row(other, 'web-0').getByText('○ Scheduled').waitFor();
    const document = (await service.guestRequest('127.0.8.10')).body;
    await row(other, 'web-0').getByText('read', { exact: true }).waitFor();
    const [{ EventId: id }] = document.Events;
    assert.equal((await service.approve('127.0.8.10', id)).status, 200);
    await row(other, 'web-0').getByText('✓ Approved').waitFor();
    await service.api('POST', `/v1/events/${id.toLowerCase()}/start`, {});
    await row(other, 'web-0').getByText('▶ Started').waitFor();
    await service.api('POST', `/v1/events/${id.toLowerCase()}/complete`, {});
    await row(other, 'web-0').getByText('● Completed').waitFor();
    await until(
      'the live list to be empty',
      async () => (await service.api('GET', '/v1/events')).body.items.length === 0,
    );
    await other.getByText('Nothing is scheduled', { exact: true }).waitFor();
  }),
);

test('a lost connection is said, and made up for', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const page = await signedIn(context, proxy.url, service.token);
    await page.getByText('Live', { exact: true }).waitFor();
    proxy.cut();
    await page.getByText(/Stale since/).waitFor();
    await page.getByText('No connection to the service').waitFor();
    await schedule(service, { cause: 'user-restart', vms: ['db'] });
    proxy.heal();
    await row(page, 'db').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    assert.equal(await page.locator('#banner').isVisible(), false);

    // The service restarts and no longer has the position of the stream: the page lists again.
    await service.stop('SIGKILL');
    await page.getByText(/Stale since/).waitFor();
    proxy.take();
    await service.launch();
    await page.getByText('Live', { exact: true }).waitFor();
    const answers = proxy.take(/^\/v1\//).filter(({ status }) => status);
    assert.deepEqual(
      answers.map(({ path, status }) => `${path.split('?')[0]} ${status}`),
      ['/v1/stream 410', '/v1/events 200', '/v1/stream 200'],
    );
    await schedule(service, { cause: 'user-restart', vms: ['web-1'] });
    await row(page, 'web-1').waitFor();
    await row(page, 'db').waitFor();
  }),
);

test('ten tabs share one stream; a change costs one request; at rest there is none', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const first = await signedIn(context, proxy.url, service.token);
    await first.getByText('Live', { exact: true }).waitFor();
    const bytes = proxy.sent;
    assert.ok(bytes <= 150_000, `the first view took ${bytes} bytes`);
    for (let n = 1; n < 10; n += 1) {
      const page = await context.newPage();
      watchErrors(page);
      await page.goto(proxy.url);
      await page.getByText('Live', { exact: true }).waitFor();
    }
    const pasts = () => proxy.requests.filter(({ path, status }) => path.startsWith('/v1/history') && status);
    await until('the past of ten tabs', () => pasts().length === 10);
    assert.equal(proxy.take(/^\/v1\/stream/).length, 1, 'one stream for all tabs');
    await schedule(service, { cause: 'user-restart', vms: ['web-0'] });
    await Promise.all(context.pages().map((page) => row(page, 'web-0').waitFor()));
    const change = proxy.take();
    assert.deepEqual(
      change.map(({ path }) => path.split('?')[0]),
      ['/v1/events'],
      'requests of a change',
    );
    const heard = proxy.streamed;
    await until('a heartbeat of the stream', () => proxy.streamed > heard);
    assert.deepEqual(proxy.take(), [], 'requests at rest');
  }),
);

test('a viewer cannot act, a tenant only on its own', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const made = async (name, role, on) =>
      JSON.parse(await service.cli('token', 'create', name, '--role', role, '--on', on, '--output', 'json'))
        .secret;
    await schedule(service, { cause: 'host-reboot', vms: ['web-0'] });
    const viewer = await signedIn(context, proxy.url, await made('viewer', 'viewer', '/'));
    await row(viewer, 'web-0').waitFor();
    assert.equal(await viewer.getByRole('button', { name: 'Schedule…' }).count(), 0);
    assert.equal(await viewer.locator('#nav').getByText('Tokens').count(), 0);
    await viewer.locator('.event-link').first().click();
    await viewer.getByRole('heading', { name: 'Who has read it' }).waitFor();
    assert.equal(await viewer.getByRole('button', { name: 'Approve…' }).count(), 0);
    const status = await viewer.evaluate(
      async () =>
        (
          await fetch('/v1/vms/db/restart', {
            method: 'POST',
            body: '{}',
            headers: { 'Content-Type': 'application/json' },
          })
        ).status,
    );
    assert.equal(status, 403, 'what the page hides, the API refuses');

    const own = await chrome.newContext();
    const tenant = await signedIn(own, proxy.url, await made('shop', 'tenant', 'default/shop'), '#/fleet');
    await tenant.locator('.fleet .row', { hasText: 'web-0' }).waitFor();
    assert.equal(await tenant.locator('.fleet .row:not([hidden])', { hasText: 'db' }).count(), 0);
    await own.close();
  }),
);

test('markup in names and descriptions stays text', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const markup = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>';
    await service.api('POST', '/v1/events', { cause: 'host-freeze', vms: ['db'], description: markup });
    await service.api('POST', '/v1/vms', {
      vm: { name: 'odd', host: markup.slice(0, 60), addresses: ['127.0.8.77'] },
    });
    await service.guestRequest('127.0.8.77', 'GET', undefined, { 'User-Agent': markup });
    const page = await signedIn(context, proxy.url, service.token);
    await row(page, 'db').locator('a').first().click();
    await page.getByText(markup).first().waitFor();
    assert.equal(await page.evaluate(() => 'hacked' in window), false);
    await page.goto(`${proxy.url}/#/vms/odd`);
    await page.getByRole('heading', { name: 'odd', exact: true }).waitFor();
    await page.getByText(markup).first().waitFor();
    await page.goto(`${proxy.url}/#/hosts/${encodeURIComponent(markup.slice(0, 60))}`);
    await page.getByRole('heading', { name: 'Host <img' }).waitFor();
    await page.goto(`${proxy.url}/#/${encodeURIComponent(markup)}`);
    await page.getByText('There is no such page').waitFor();
    await page.goto(`${proxy.url}/#/vms/${encodeURIComponent(markup)}`);
    await page.getByText('cannot be shown').waitFor();
    assert.equal(await page.evaluate(() => 'hacked' in window), false);
  }),
);

test('every view has no serious accessibility findings, in light, dark and at phone width', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const {
      id,
      targets: [{ event }],
    } = await schedule(service, { cause: 'host-reboot', vms: ['web-0', 'web-1'] });
    await service.guestRequest('127.0.8.10');
    await schedule(service, { cause: 'user-restart', vms: ['db'] });
    const page = await signedIn(context, proxy.url, service.token);
    await checkLooks(page, proxy.url, [
      ['#/now', 'Now'],
      [`#/events/${event}`, 'Reboot of web-0'],
      [`#/operations/${id}`, 'Operation'],
      ['#/fleet', 'Fleet'],
      ['#/fleet?by=scope', 'Scopes'],
      ['#/vms/web-0', 'web-0'],
      ['#/hosts', 'Hosts'],
      ['#/hosts/h1', 'Host h1'],
      ['#/history', 'History'],
      ['#/nodes', 'Nodes'],
      ['#/tokens', 'Tokens'],
      ['#/audit', 'Audit'],
    ]);
  }),
);

test(
  'nodes and members are shown with what is wrong, and the lead is handed over after its plan',
  LIMIT,
  () =>
    withService([], async ({ service, proxy, context }) => {
      const shown = cluster();
      const requests = [];
      await context.route('**/v1/cluster', (route) => route.fulfill({ json: shown }));
      await context.route('**/v1/cluster/hand-over', (route) => {
        requests.push(route.request().method());
        for (const node of shown.nodes) node.leads = node.name === 'b';
        shown.leader = 'b';
        return route.fulfill({ json: { from: 'a', leader: 'b' } });
      });
      const page = await signedIn(context, proxy.url, service.token, '#/nodes');
      const part = (name) => page.getByRole('region', { name, exact: true });
      const cells = async (name) => {
        const rows = await part(name).locator('tbody tr').all();
        return Promise.all(rows.map((one) => one.locator('td').allInnerTexts()));
      };
      const bad = (name) => part(name).locator('td.bad').allInnerTexts();
      await page.getByText('2 of 3 nodes running').waitFor();
      assert.deepEqual(await cells('Nodes'), [
        ['a (this one)', 'leads', '0.4 s ago', '-12 ms', '1', '2', 'https://10.9.0.1:9256'],
        ['b', 'cannot lead', '0.4 s ago', '+1700 ms', '1', '2', 'https://10.9.0.2:9256'],
        ['c', 'silent', '3 h 30 min ago', '', '1', '2', 'https://10.9.0.3:9256'],
      ]);
      assert.deepEqual(await bad('Nodes'), ['cannot lead', 'silent']);
      await part('etcd').getByText('3 members; database 1.8 GiB of 2.0 GiB, 700.0 MiB in use').waitFor();
      const refused = 'silent: tcp connect error: Connection refused (os error 111)';
      assert.deepEqual(await cells('etcd'), [
        ['e1', 'leads', '3.4.23', '1.8 GiB', '700.0 MiB', 'https://10.9.0.1:2379'],
        ['e2', 'follows', '3.4.23', '1.8 GiB', '700.0 MiB', 'https://10.9.0.2:2379'],
        ['e3', refused, '', '', '', 'https://10.9.0.3:2379'],
      ]);
      assert.deepEqual(await bad('etcd'), [refused]);
      const problems = await part('Problems').getByRole('listitem').allInnerTexts();
      assert.match(problems[1], /^node c is silent since (?!20\d\d-)/, 'in the zone of the browser');
      const others = (texts) => texts.filter((_, n) => n !== 1);
      assert.deepEqual(others(problems), others(shown.problems.map(({ detail }) => detail)));
      await checkLooks(page, proxy.url, [['#/nodes', 'Nodes']], async (look) => {
        await page.getByText('2 of 3 nodes running').waitFor();
        const lag = part('Nodes').locator('td:nth-child(5)').first();
        const name = await lag.evaluate((cell) => getComputedStyle(cell, '::before').content);
        assert.equal(name, look.endsWith('-390') ? '"Lag "' : 'none', 'numbers have a name without the head');
        if (PICTURES) await page.screenshot({ path: join(PICTURES, `nodes-${look}.png`), fullPage: true });
      });

      const [open, dialog] = [
        page.getByRole('button', { name: 'Hand over the lead…' }),
        page.getByRole('dialog'),
      ];
      await open.click();
      await dialog.getByText('a leads, and no other node can take the lead now').waitFor();
      await dialog.getByRole('button', { name: 'Close' }).click();
      Object.assign(shown.nodes[1], { can_lead: true, clock_offset_ms: 3 });
      shown.problems.shift();
      await until('the clock is not a problem any more', async () => {
        return (await part('Problems').getByRole('listitem').count()) === 3;
      });
      await open.click();
      await dialog.getByText('a gives up the lead; b takes it').waitFor();
      assert.deepEqual(requests, [], 'nothing is sent before it is confirmed');
      await dialog.getByRole('button', { name: 'Hand over the lead', exact: true }).click();
      await page.getByText('Leader: b.').waitFor();
      assert.deepEqual(requests, ['POST']);
      assert.deepEqual(
        (await cells('Nodes')).map(([name, state]) => `${name} ${state}`),
        ['a (this one) follows', 'b leads', 'c silent'],
      );
    }),
);

test('an event is found and approved by keyboard alone', LIMIT, () =>
  withService(['--driver', 'manual'], async ({ service, proxy, context }) => {
    await schedule(service, { cause: 'user-restart', vms: ['db'] });
    const page = await context.newPage();
    watchErrors(page);
    await page.goto(proxy.url);
    await page.getByLabel('Token').waitFor();
    await page.keyboard.type(service.token);
    await page.keyboard.press('Enter');
    await row(page, 'db').waitFor();
    const focused = () =>
      page.evaluate(
        () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent,
      );
    const tabTo = async (name) => {
      for (let n = 0; n < 60; n += 1) {
        if ((await focused())?.startsWith(name)) return;
        await page.keyboard.press('Tab');
      }
      assert.fail(`${name} is not reached by Tab`);
    };
    await tabTo('Events, the next one first');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Reboot of db' }).waitFor();
    await tabTo('Approve…');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.press('Enter');
    await page.getByText('✓ Approved').waitFor();
    assert.equal((await service.api('GET', '/v1/events')).body.items[0].approved, true);
  }),
);

test('ten thousand VMs need at most 200 rows', LIMIT, () =>
  withService(
    [],
    async ({ service, proxy, context }) => {
      const vms = (scope) =>
        Array.from({ length: 500 }, (_, n) => ({
          name: `vm-${scope}-${n}`,
          update_domain: n % 5,
          host: `h${n % 50}`,
        }));
      for (let n = 0; n < 20; n += 1) {
        const { status } = await service.api('PUT', `/v1/scopes/default/big/s${n}`, {
          kind: 'availability-set',
          vms: vms(n),
        });
        assert.equal(status, 200);
      }
      const page = await signedIn(context, proxy.url, service.token, '#/fleet');
      await page.getByText(/^10,000 VMs, as of/).waitFor();
      const rows = () => page.locator('.row').count();
      assert.ok((await rows()) <= 200, `${await rows()} rows`);
      await page.locator('.fleet').evaluate((list) => {
        list.scrollTop = list.scrollHeight;
      });
      await page
        .locator('.fleet .row', { hasText: 'vm-19-499' })
        .or(page.locator('.fleet .row', { hasText: 'vm-9-499' }))
        .first()
        .waitFor();
      assert.ok((await rows()) <= 200, `${await rows()} rows`);
      await page.getByLabel('Search').fill('vm-7-42 ');
      await page.getByText('11 of 10,000 VMs').waitFor();
    },
    { fleet: null },
  ),
);

test('hosts are maintained after their plan, and the history counts and exports the events', LIMIT, () =>
  withService(['--simulated-duration', '1s'], async ({ service, proxy, context }) => {
    const page = await signedIn(context, proxy.url, service.token, '#/hosts');
    await page.getByLabel('Select h1').check();
    await page.getByLabel('Select h2').check();
    await page.getByRole('button', { name: 'Schedule…' }).click();
    const dialog = page.getByRole('dialog');
    // web-0 on h1 and web-1 on h2 are in different update domains of one scope.
    await dialog.getByText('h2 waits for h1: they share shop/web.').waitFor();
    await dialog.getByText('Will not hear').first().waitFor();
    await dialog.getByRole('button', { name: 'Schedule' }).click();
    await dialog.getByText('Done: 3 events').waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.goto(`${proxy.url}/#/hosts/h1`);
    await page.getByText('Host maintenance: reboot').waitFor();
    await page.getByRole('button', { name: 'Start now…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Start operation now' }).click();
    await page.getByText('No open operation.').waitFor();

    await page.goto(`${proxy.url}/#/history?days=1`);
    await page.getByText('2 events', { exact: true }).waitFor();
    const file = async (name) => {
      const button = page.getByRole('button', { name });
      const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
      return readFileSync(await download.path(), 'utf8');
    };
    const csv = (await file('CSV')).split('\r\n');
    assert.match(csv[0], /^"event","operation","type","outcome"/);
    assert.equal(csv.length, 3, csv);
    const events = JSON.parse(await file('JSON'));
    assert.deepEqual(
      events.map(({ cause, status }) => [cause, status]),
      [
        ['host-reboot', 'Completed'],
        ['host-reboot', 'Completed'],
      ],
    );
  }),
);

test(
  'the timeline has a lane for each scope, VM or host; it zooms, pans and collapses idle time',
  LIMIT,
  () =>
    withService([], async ({ service, proxy, context }) => {
      await schedule(service, { cause: 'host-reboot', vms: ['web-0', 'web-1'], in_seconds: 1800 });
      await schedule(service, { cause: 'host-freeze', vms: ['web-0'], in_seconds: 1500 });
      await schedule(service, { cause: 'predicted-failure', vms: ['db'] });
      const page = await signedIn(context, proxy.url, service.token);
      const lanes = () => page.locator('.lane:not([hidden]) .lane-link:not([hidden])').allTextContents();
      await until('lanes by scope', async () => (await lanes()).join() === 'shop/web,db');
      const bars = page.locator('.lane:not([hidden]) .bar:not([hidden])');
      assert.equal(await bars.count(), 4, 'overlapping events have rows of their own');
      await page.getByLabel('Hosts').check({ force: true });
      await until('lanes by host', async () => (await lanes()).join() === 'h1,h2');
      assert.match(page.url(), /lanes=host/, 'the choice is in the address');
      const width = async () => (await bars.first().boundingBox()).width;
      const wide = await width();
      await page.getByRole('button', { name: 'Zoom out' }).click();
      await until('a shorter bar', async () => (await width()) < wide);
      await page.getByLabel('Timeline: lanes with events').focus();
      await page.keyboard.press('+');
      await page.keyboard.press('0');
      await until('the first zoom again', async () => Math.abs((await width()) - wide) < 3);
      await page.getByLabel('1 week').check({ force: true });
      await until('a short bar in a week', async () => (await width()) < wide / 2);
      await page.getByLabel('Collapse idle time').check();
      await until('a longer bar without idle time', async () => (await width()) > wide / 2);
    }),
);

test('an event is started, completed and shown to its guest as JSON of each version', LIMIT, () =>
  withService(['--driver', 'manual'], async ({ service, proxy, context }) => {
    const {
      targets: [{ event }],
    } = await schedule(service, { cause: 'host-redeploy', vms: ['db'] });
    const page = await signedIn(context, proxy.url, service.token, `#/events/${event}`);
    await page.getByText('"EventType": "Redeploy"').waitFor();
    await page.getByText('"DurationInSeconds"').waitFor();
    await page.getByLabel('api-version').selectOption('2017-08-01');
    await until(
      'the older document',
      async () => !(await page.getByLabel('Document').textContent()).includes('DurationInSeconds'),
    );
    assert.match(
      await page.locator('.curl').textContent(),
      /^curl -H Metadata:true "http:\/\/169\.254\.169\.254\/metadata\/scheduledevents\?api-version=2017-08-01"$/,
    );
    await page.getByRole('button', { name: 'Start now…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Start now' }).click();
    await page.getByText('▶ Started').waitFor();
    await page.getByRole('button', { name: 'Complete…' }).click();
    await page.getByLabel('New host of db (optional)').fill('h9');
    await page.getByRole('dialog').getByRole('button', { name: 'Complete' }).click();
    await page.getByText('● Completed').waitFor();
    await page.getByText('Event completed').waitFor();
    assert.equal((await service.api('GET', '/v1/vms/db')).body.host, 'h9');
  }),
);

test('tokens are created, shown once and revoked', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const page = await signedIn(context, proxy.url, service.token, '#/tokens');
    await page.getByLabel('Name').fill('night');
    await page.getByRole('button', { name: 'Create' }).click();
    const secret = await page.getByLabel('Secret of night').inputValue();
    assert.equal((await service.api('GET', '/v1/session', undefined, secret)).body.token, 'night');
    await page.reload();
    await page.locator('td', { hasText: 'night' }).waitFor();
    assert.equal(await page.getByText(secret).count(), 0, 'the secret is shown once');
    await page.locator('tr', { hasText: 'night' }).getByRole('button', { name: 'Revoke…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await until(
      'the token to be revoked',
      async () => (await service.api('GET', '/v1/session', undefined, secret)).status === 401,
    );
  }),
);

test('over TLS the cookie is secure and bound to the host, and the page is live', LIMIT, async () => {
  const files = mkdtempSync(join(tmpdir(), 'notbefore-console-tls-'));
  const [key, cert] = [join(files, 'key.pem'), join(files, 'cert.pem')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
  await run('openssl', [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '30',
    '-keyout',
    key,
    '-out',
    cert,
    ...subject,
  ]);
  const service = await Service.start('--operator-cert', cert, '--operator-key', key);
  const context = await chrome.newContext();
  try {
    await service.cli('vm', 'add', 'db', '--address', '127.0.8.20');
    const page = await signedIn(context, service.url, service.token);
    const [cookie] = await context.cookies();
    const port = new URL(service.url).port;
    assert.deepEqual([cookie.name, cookie.secure, cookie.path], [`__Host-notbefore-${port}`, true, '/']);
    await page.getByText('Live', { exact: true }).waitFor();
    await service.cli('vm', 'restart', 'db');
    await row(page, 'db').waitFor();
    assert.deepEqual(page.errors, []);
  } finally {
    await context.close();
    await service.close();
    rmSync(files, { recursive: true });
  }
});

test('a finger moves the timeline', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    await schedule(service, { cause: 'host-reboot', vms: ['web-0'], in_seconds: 1800 });
    const page = await signedIn(context, proxy.url, service.token);
    const bar = page.locator('.lane:not([hidden]) .bar:not([hidden])').first();
    const left = async () => (await bar.boundingBox()).x;
    const [before, { y }] = [await left(), await bar.boundingBox()];
    const touch = await context.newCDPSession(page);
    const send = (type, x) =>
      touch.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: type === 'touchEnd' ? [] : [{ x, y: y + 10 }],
      });
    await send('touchStart', 900);
    for (let x = 880; x >= 700; x -= 20) await send('touchMove', x);
    await send('touchEnd');
    await until('the bar to move', async () => (await left()) < before - 50);
    assert.doesNotMatch(page.url(), /#\/events\//, 'a drag opens nothing');
  }),
);

test('only the plan that is shown can be sent', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const page = await signedIn(context, proxy.url, service.token);
    await page.getByRole('button', { name: 'Schedule…' }).click();
    const dialog = page.getByRole('dialog');
    const [names, send] = [dialog.getByLabel('VMs'), dialog.locator('button[type=submit]')];
    await names.fill('web-0');
    await until('a plan for web-0', () => send.isEnabled());
    proxy.take();
    // In one turn of the page, so that no plan comes in between.
    const isDisabled = await page.evaluate(() => {
      const input = document.querySelector('#act-minutes');
      input.value = '4000';
      input.dispatchEvent(new Event('input', { bubbles: true }));
      input.form.requestSubmit();
      return input.form.querySelector('[type=submit]').disabled;
    });
    assert.equal(isDisabled, true, 'an edit takes the plan back');
    await names.fill('db');
    await dialog.getByText('Reboot of 1 VM in 1 scope').waitFor();
    await until('a plan for db', () => send.isEnabled());
    assert.deepEqual((await service.api('GET', '/v1/events')).body.items, [], 'nothing was sent');
    await send.click();
    await dialog.getByText('Done: 1 event').waitFor();
    const [event] = (await service.api('GET', '/v1/events')).body.items;
    assert.equal(event.resources[0].name, 'db');
    const minutes = (Date.parse(event.not_before) - Date.now()) / 60_000;
    assert.ok(minutes > 3990 && minutes < 4010, `in ${minutes} minutes`);

    // A VM of the plan goes: the page says so, and plans again.
    await dialog.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Schedule…' }).click();
    await names.fill('web-0\nweb-1');
    await until('a plan for both', () => send.isEnabled());
    await service.cli('vm', 'remove', 'web-1', '--yes');
    await send.click();
    await dialog.locator('.problem').first().waitFor();
    assert.equal(await send.isDisabled(), true);
  }),
);

test('a sign-in link replaces no session without a question, and works in an open tab', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const link = async (token) =>
      `${proxy.url}/#code=${(await service.api('POST', '/v1/session/link', undefined, token)).body.code}`;
    const made = await service.api('POST', '/v1/tokens', {
      name: 'shop',
      grants: [{ role: 'tenant', path: 'default/shop' }],
    });
    const first = await context.newPage();
    watchErrors(first);
    await first.goto(proxy.url);
    await first.getByLabel('Token').waitFor();
    // Pasted into the address bar of the open page.
    const own = await link(service.token);
    await first.evaluate((url) => location.assign(url), own);
    await first.getByText('Live', { exact: true }).waitFor();
    assert.equal(new URL(first.url()).hash.includes('code'), false);

    const second = await context.newPage();
    watchErrors(second);
    await second.goto(own);
    await second.getByText('You are signed in as root').waitFor();
    await second.getByRole('button', { name: 'Use the link' }).click();
    await second.getByText('was used or has expired').waitFor();
    await second.getByRole('button', { name: 'Stay signed in as root' }).click();
    await second.getByRole('heading', { name: 'Now' }).waitFor();

    // The link of another token, after the question: the other tab must not show what it may not see any more.
    await schedule(service, { cause: 'user-restart', vms: ['db'] });
    await row(first, 'db').waitFor();
    await second.evaluate((url) => location.assign(url), await link(made.body.secret));
    await second.getByRole('button', { name: 'Use the link' }).click();
    for (const page of [second, first]) {
      await page.locator('#who', { hasText: 'shop' }).waitFor();
      await page.getByText('Nothing is scheduled', { exact: true }).waitFor();
      assert.equal(await row(page, 'db').count(), 0, 'an event of another tenant');
    }
  }),
);

test('a tab whose session ended elsewhere says so', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const first = await signedIn(context, proxy.url, service.token);
    await first.getByText('Live', { exact: true }).waitFor();
    const second = await context.newPage();
    watchErrors(second);
    await second.goto(proxy.url);
    await second.getByRole('button', { name: 'Sign out' }).click();
    await first.getByLabel('Token').waitFor();

    // The cookie goes, and then something changes.
    const third = await signedIn(context, proxy.url, service.token, '#/fleet');
    await third.getByText('Live', { exact: true }).waitFor();
    await third.locator('.fleet .row', { hasText: 'db' }).locator('a').first().click();
    await third.getByRole('button', { name: 'Restart…' }).click();
    await third.getByRole('dialog').waitFor();
    await context.clearCookies();
    await schedule(service, { cause: 'user-restart', vms: ['db'] });
    await third.getByText('Your session has ended').waitFor();
    await third.getByLabel('Token').fill(service.token);
    await third.getByRole('button', { name: 'Sign in' }).click();
    await third.getByText('Live', { exact: true }).waitFor();
  }),
);

test('the fleet is read again after a failed read', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const page = await signedIn(context, proxy.url, service.token, '#/fleet');
    await page.getByText(/^5 VMs, as of/).waitFor();
    proxy.cut();
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('The service does not answer.').waitFor();
    await service.cli('vm', 'add', 'late', '--address', '127.0.8.99');
    proxy.heal();
    await page.locator('.fleet .row', { hasText: 'late' }).waitFor();
    await page.getByText(/^6 VMs, as of/).waitFor();
  }),
);

test('an answer that is cut off does not make an action happen twice', LIMIT, () =>
  withService([], async ({ service, proxy, context }) => {
    const page = await signedIn(context, proxy.url, service.token, '#/vms/db');
    await page.getByRole('button', { name: 'Restart…' }).click();
    const dialog = page.getByRole('dialog');
    await until('a plan', () => dialog.locator('button[type=submit]').isEnabled());
    proxy.cutAnswers = 2;
    await dialog.locator('button[type=submit]').click();
    await dialog.getByText('Done: 1 event').waitFor();
    assert.equal(proxy.cutAnswers, 0, 'two answers were cut off');
    assert.equal((await service.api('GET', '/v1/events')).body.items.length, 1);
  }),
);
