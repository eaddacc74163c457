// Support of the console's tests: a service on free ports, guests with addresses of their own, a proxy between browser
// and service that counts requests and can cut connections, and Chromium.
//
// No fixed sleeps: a test waits for a condition, and names it on a timeout.

import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const root = new URL('../../../../', import.meta.url).pathname;
const require = createRequire(join(root, 'target/tests-node/package.json'));
export const { chromium } = require('playwright-core');
export const axeSource = () => readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
export const binary = process.env.NOTBEFORE_BINARY ?? join(root, 'target/debug/notbefore');
const PATIENCE_MS = 20_000;

export const run = promisify(execFile);

/** Waits for a condition. */
export async function until(what, look) {
  const end = Date.now() + PATIENCE_MS;
  let last;
  while (Date.now() < end) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error(`timeout: ${what}${last ? ` (${last})` : ''}`);
}

export class Service {
  /** Starts a service on free ports, with further flags. */
  static async start(...flags) {
    const service = new Service();
    service.data = mkdtempSync(join(tmpdir(), 'notbefore-console-'));
    service.flags = flags;
    service.ports = { guest: '127.0.0.1:0', operator: '127.0.0.1:0' };
    await service.launch();
    return service;
  }

  async launch() {
    const ready = join(this.data, 'ready.json');
    const { guest, operator } = this.ports;
    // The file of a service that was killed is still there.
    rmSync(ready, { force: true });
    const flags = [
      'serve',
      '--data',
      this.data,
      '--guest',
      guest,
      '--operator',
      operator,
      '--ready-file',
      ready,
      ...this.flags,
    ];
    this.child = spawn(binary, flags, {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, NOTBEFORE_LOG: 'warn' },
    });
    const listeners = await until('the service to be ready', () => JSON.parse(readFileSync(ready, 'utf8')));
    this.guest = listeners.guest[0].address;
    this.operator = listeners.operator.address;
    this.url = `${this.flags.includes('--operator-cert') ? 'https' : 'http'}://${this.operator}`;
    this.token = readFileSync(join(this.data, 'operator.token'), 'utf8').trim();
    // A restart keeps the ports.
    this.ports = { guest: this.guest, operator: this.operator };
  }

  async stop(signal = 'SIGTERM') {
    const ended = new Promise((done) => this.child.once('exit', done));
    this.child.kill(signal);
    await ended;
  }

  async close() {
    await this.stop('SIGKILL');
    rmSync(this.data, { recursive: true, force: true });
  }

  /** Runs the command line. */
  async cli(...args) {
    return (await run(binary, args, { env: { ...process.env, NOTBEFORE_DATA: this.data } })).stdout.trim();
  }

  /** Applies a fleet file. */
  async fleet(yaml) {
    const file = join(this.data, 'fleet.yaml');
    writeFileSync(file, yaml);
    await this.cli('fleet', 'apply', file);
  }

  /** A request to the operator API with the first token, or another. */
  async api(method, path, body, token = this.token) {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
    const response = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: text && response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : text,
    };
  }

  /** A request of a guest from its address. */
  guestRequest(address, method = 'GET', body = undefined, headers = {}) {
    const [host, port] = this.guest.split(':');
    const path = '/metadata/scheduledevents?api-version=2020-07-01';
    return new Promise((done, failed) => {
      const request = http.request(
        {
          host,
          port,
          path,
          method,
          localAddress: address,
          headers: { Metadata: 'true', ...headers },
          agent: false,
        },
        (response) => {
          let text = '';
          response.on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () => done({ status: response.statusCode, body: text && JSON.parse(text) }));
        },
      );
      request.on('error', failed);
      request.end(body && JSON.stringify(body));
    });
  }

  /** Approves an event as its guest. */
  approve(address, event) {
    return this.guestRequest(address, 'POST', { StartRequests: [{ EventId: event.toUpperCase() }] });
  }
}

/** A proxy between browser and service: counts requests and bytes, and can refuse and cut connections. */
export class Proxy {
  static async start(service) {
    const proxy = new Proxy();
    Object.assign(proxy, {
      service,
      requests: [],
      bytes: 0,
      streamed: 0,
      cutAnswers: 0,
      isCut: false,
      sockets: new Set(),
    });
    proxy.server = http.createServer((request, response) => proxy.forward(request, response));
    proxy.server.on('connection', (socket) => {
      if (proxy.isCut) return socket.destroy();
      proxy.sockets.add(socket);
      socket.on('close', () => {
        proxy.bytes += socket.bytesWritten;
        proxy.sockets.delete(socket);
      });
    });
    await new Promise((done) => proxy.server.listen(0, '127.0.0.1', done));
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  forward(request, response) {
    const [host, port] = this.service.operator.split(':');
    const entry = { method: request.method, path: request.url, status: 0 };
    this.requests.push(entry);
    const file = this.file(request.url);
    const onward = http.request(
      { host, port, path: request.url, method: request.method, headers: request.headers, agent: false },
      (answer) => {
        entry.status = answer.statusCode;
        if (request.url === '/v1/stream') answer.on('data', ({ length }) => (this.streamed += length));
        if (file && answer.statusCode === 200) {
          const { 'content-length': _, ...headers } = answer.headers;
          response.writeHead(200, headers);
          return response.end(file);
        }
        response.writeHead(answer.statusCode, answer.headers);
        response.flushHeaders();
        if (request.method === 'POST' && this.cutAnswers > 0) {
          this.cutAnswers -= 1;
          return answer.once('end', () => response.destroy()).resume();
        }
        answer.pipe(response);
        answer.on('error', () => response.destroy());
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  }

  /** With NOTBEFORE_CONSOLE_FILES=DIRECTORY: the console's files as they are there, to change them without a build. */
  file(path) {
    const directory = process.env.NOTBEFORE_CONSOLE_FILES;
    if (!directory || !/^\/($|console\/)/.test(path)) return null;
    return readFileSync(join(directory, path === '/' ? 'index.html' : path.slice('/console/'.length)));
  }

  /** Bytes sent to the browser so far. */
  get sent() {
    return [...this.sockets].reduce((sum, socket) => sum + socket.bytesWritten, this.bytes);
  }

  /** Requests since the last call whose path matches. */
  take(pattern = /./) {
    const found = this.requests.filter(({ path }) => pattern.test(path));
    this.requests = [];
    return found;
  }

  cut() {
    this.isCut = true;
    this.sockets.forEach((socket) => socket.destroy());
  }

  heal() {
    this.isCut = false;
  }

  async close() {
    this.cut();
    await new Promise((done) => this.server.close(done));
  }
}

/** Chromium with an empty profile. */
export function browser() {
  const args = [
    '--no-sandbox',
    '--disable-gpu',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
    // Certificates of tests are signed by nobody; all pages are on loopback.
    '--ignore-certificate-errors',
  ];
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    headless: true,
    args,
  });
}

/** A new page, signed in with a token. Fails at errors of its scripts and at violations of its policy. */
export async function signedIn(context, url, token, hash = '') {
  const page = await context.newPage();
  watchErrors(page);
  await page.goto(`${url}/${hash}`);
  await page.getByLabel('Token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('#top').waitFor();
  return page;
}

/** Collects errors of a page in `page.errors`. */
export function watchErrors(page) {
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|net::ERR/.test(message.text()))
      page.errors.push(message.text());
  });
}

/** The fleet of most tests. */
export const FLEET = `
scopes:
  - name: web
    kind: availability-set
    group: shop
    vms:
      - { name: web-0, update_domain: 0, addresses: [127.0.8.10], host: h1 }
      - { name: web-1, update_domain: 1, addresses: [127.0.8.11], host: h2 }
  - name: db
    kind: standalone
    vms: [ { name: db, addresses: [127.0.8.20], host: h1 } ]
  - name: batch
    kind: scale-set
    terminate_notification: 5m
    vms:
      - { name: batch_0, spot: true, addresses: [127.0.8.30], host: h3 }
      - { name: batch_1, spot: true, addresses: [127.0.8.31], host: h3 }
`;
