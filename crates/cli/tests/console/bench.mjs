// Measures the console in Chromium with 10,000 VMs and 1,000 live events: './dev bench console'. Limits are those of
// docs/internals/benchmarks.md; a value over its limit is marked, and the exit code is 1.

import { readFileSync } from 'node:fs';

import { Proxy, Service, browser, signedIn, until, watchErrors } from './support.mjs';

const SCOPES = 200,
  VMS_PER_SCOPE = 50,
  UPDATE_DOMAINS = 5;
const CHANGES = 20,
  REST_S = 20,
  TABS = 10;
/** Ticks per second of /proc/PID/stat. */
const TICKS = 100;

const service = await Service.start('--always-give-notice');
const names = (scope) => Array.from({ length: VMS_PER_SCOPE }, (_, n) => `vm-${scope}-${n}`);
for (let scope = 0; scope < SCOPES; scope += 1) {
  const vms = names(scope).map((name, n) => ({
    name,
    update_domain: n % UPDATE_DOMAINS,
    host: `h${(scope * 7 + n) % 500}`,
  }));
  await service.api('PUT', `/v1/scopes/default/bench/s${scope}`, { kind: 'availability-set', vms });
  await service.api('POST', '/v1/events', {
    cause: 'host-freeze',
    vms: names(scope),
    in_seconds: 3600 + scope * 60,
  });
}
const { events } = (await service.api('GET', '/v1/status')).body;
console.log(`fleet: ${SCOPES * VMS_PER_SCOPE} VMs, ${events.scheduled} live events`);

const chrome = await browser();
const context = await chrome.newContext({ viewport: { width: 1600, height: 1000 } });
const results = [];
const add = (what, value, limit, unit) => results.push({ what, value, limit, unit });

// First view: from the navigation of a signed-in browser to the first row.
const page = await signedIn(context, service.url, service.token);
await page.locator('.table .row').first().waitFor();
const firsts = [];
for (let n = 0; n < 5; n += 1) {
  const begin = performance.now();
  await page.goto(`${service.url}/#/now?n=${n}`);
  await page.reload();
  await page.locator('.now .table .row').first().waitFor();
  firsts.push(performance.now() - begin);
}
add('first view, median of 5', firsts.sort((a, b) => a - b)[2], 1000, 'ms');

// Bytes of a first visit, without the list of events.
const empty = await Service.start();
const first = await Proxy.start(empty);
const fresh = await chrome.newContext();
await (await signedIn(fresh, first.url, empty.token)).getByText('Live', { exact: true }).waitFor();
add('bytes of the first view', first.sent / 1000, 150, 'KB');
await fresh.close();
await first.close();
await empty.close();

// A change: from the answer of its commit to the page.
await page.evaluate(() => {
  window.seen = [];
  new MutationObserver(() => window.seen.push(performance.timeOrigin + performance.now())).observe(
    document.querySelector('.summary'),
    { childList: true, characterData: true, subtree: true },
  );
});
const delays = [];
for (let n = 0; n < CHANGES; n += 1) {
  await page.evaluate(() => {
    window.seen = [];
  });
  await service.api('POST', '/v1/events', { cause: 'user-restart', vms: [`vm-${n}-1`] });
  const committed = performance.timeOrigin + performance.now();
  const shown = await until('the change on the page', () => page.evaluate(() => window.seen[0]));
  delays.push(shown - committed);
}
add(`change on the page, slowest of ${CHANGES}`, Math.max(...delays), 300, 'ms');

// Long tasks while scrolling and zooming.
const longest = async (hash, work) => {
  await page.goto(`${service.url}/${hash}`);
  await page.locator('.row').first().waitFor();
  await page.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => {});
  await page.evaluate(() => {
    window.tasks = [0];
    new PerformanceObserver((list) =>
      list.getEntries().forEach((entry) => window.tasks.push(entry.duration)),
    ).observe({ entryTypes: ['longtask'] });
  });
  await page.evaluate(work);
  return page.evaluate(() => Math.max(...window.tasks));
};
const frames = 'new Promise((done) => requestAnimationFrame(() => setTimeout(done)))';
add(
  'longest task, scrolling 10,000 VMs',
  await longest(
    '#/fleet',
    `(async () => { const list = document.querySelector('.fleet'); for (let n = 0; n < 120; n += 1) { list.scrollTop = (n * 3011) % list.scrollHeight; await ${frames}; } })()`,
  ),
  50,
  'ms',
);
add(
  'longest task, scrolling and zooming the timeline',
  await longest(
    '#/now?lanes=vm&window=1+week',
    `(async () => { const list = document.querySelector('.timeline'); list.focus(); for (let n = 0; n < 120; n += 1) { list.scrollTop = (n * 3011) % list.scrollHeight; list.dispatchEvent(new KeyboardEvent('keydown', { key: n % 20 < 10 ? '+' : '-' })); await ${frames}; } })()`,
  ),
  50,
  'ms',
);
add('rows in the document', await page.locator('.row').count(), 200, '');

// Ten tabs at rest.
for (let n = 1; n < TABS; n += 1) {
  const tab = await context.newPage();
  watchErrors(tab);
  await tab.goto(service.url);
  await tab.getByText('Live', { exact: true }).waitFor();
}
const ticks = () => {
  const fields = readFileSync(`/proc/${service.child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return Number(fields[11]) + Number(fields[12]);
};
await new Promise((done) => setTimeout(done, 2000));
const before = ticks();
await new Promise((done) => setTimeout(done, REST_S * 1000));
add(`CPU of the service, ${TABS} tabs at rest`, ((ticks() - before) / TICKS / REST_S) * 100, 1, '%');

let isOver = false;
for (const { what, value, limit, unit } of results) {
  isOver ||= value > limit;
  console.log(
    `${what.padEnd(52)} ${value.toFixed(1).padStart(8)} ${unit.padEnd(3)} limit ${limit}${value > limit ? '  OVER' : ''}`,
  );
}
await chrome.close();
await service.close();
process.exit(isOver ? 1 : 0);
