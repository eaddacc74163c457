// Writes pictures of every view of the console, of the demo, in light, dark and at phone width: pictures.mjs DIRECTORY

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Proxy, Service, binary, browser, signedIn, until } from './support.mjs';

const [, , directory = 'target/pictures'] = process.argv;
/** Steps of the demo before the pictures: half a minute each. */
const SECONDS = Number(process.env.NOTBEFORE_PICTURES_AFTER ?? 100);
mkdirSync(directory, { recursive: true });

const place = mkdtempSync(join(tmpdir(), 'notbefore-pictures-'));
const ready = join(place, 'ready.json');
const child = spawn(
  binary,
  ['serve', '--demo', '--guest', '127.0.0.1:0', '--operator', '127.0.0.1:0', '--ready-file', ready],
  { stdio: ['ignore', 'ignore', 'inherit'] },
);
const listeners = await until('the demo to be ready', () => JSON.parse(readFileSync(ready, 'utf8')));
const service = Object.assign(new Service(), {
  operator: listeners.operator.address,
  url: listeners.operator.url,
  token: readFileSync(listeners.token_file, 'utf8').trim(),
});
const proxy = await Proxy.start(service);
const chrome = await browser();
console.log(`waiting ${SECONDS} s for the demo's events`);
await new Promise((done) => setTimeout(done, SECONDS * 1000));

const { items: events } = (await service.api('GET', '/v1/events?sort=time')).body;
const { id: event, operation } = events.find((one) => one.cause === 'host-reboot') ?? events[0];
const views = {
  now: '#/now',
  'now-vms': '#/now?lanes=vm&window=6+hours',
  event: `#/events/${event}`,
  operation: `#/operations/${operation}`,
  fleet: '#/fleet',
  scopes: '#/fleet?by=scope',
  vm: '#/vms/web-0',
  hosts: '#/hosts',
  host: '#/hosts/rack2-a',
  history: '#/history?days=1',
  tokens: '#/tokens',
  audit: '#/audit',
};
const looks = {
  light: { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
  dark: { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 } },
};
for (const [look, options] of Object.entries(looks)) {
  const context = await chrome.newContext({ ...options, deviceScaleFactor: look === 'phone' ? 2 : 1 });
  const page = await context.newPage();
  await page.goto(proxy.url);
  await page.getByLabel('Token').waitFor();
  await page.screenshot({ path: join(directory, `sign-in-${look}.png`) });
  await page.close();
  const own = await signedIn(context, proxy.url, service.token);
  for (const [name, hash] of Object.entries(views)) {
    await own.goto(`${proxy.url}/${hash}`);
    await own.locator('main h1').waitFor();
    await own.getByText('Live', { exact: true }).waitFor();
    await own.waitForTimeout(500);
    await own.waitForLoadState('networkidle', { timeout: 3000 }).catch(() => {});
    await own.screenshot({ path: join(directory, `${name}-${look}.png`) });
  }
  await own.goto(`${proxy.url}/#/vms/web-1`);
  await own.getByRole('button', { name: 'Restart…' }).click();
  await own.getByText('Will hear').waitFor();
  await own.screenshot({ path: join(directory, `plan-${look}.png`) });
  await context.close();
}
await chrome.close();
await proxy.close();
const ended = new Promise((done) => child.once('exit', done));
child.kill();
await ended;
rmSync(place, { recursive: true, force: true });
console.log(`pictures are in ${directory}`);
process.exit(0);
