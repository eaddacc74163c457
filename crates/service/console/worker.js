// The shared worker: one stream of the service for all tabs of a browser.

import { Live } from './live.js';

/** @import {TabMessage} from './live.js' */

/** @type {Set<MessagePort>} */
const tabs = new Set();
const live = new Live((message) => tabs.forEach((tab) => tab.postMessage(message)));

/** Tabs notice by this that the worker lives. */
setInterval(() => tabs.forEach((tab) => tab.postMessage({ kind: 'alive' })), 15_000);

addEventListener('connect', (event) => {
  const [tab] = /** @type {MessageEvent} */ (event).ports;
  tab.onmessage = (/** @type {MessageEvent<TabMessage>} */ { data }) => {
    if (data.kind === 'hello') {
      tabs.add(tab);
      live.startFor(data.token);
      live.snapshot().forEach((message) => tab.postMessage(message));
    } else if (data.kind === 'wake') {
      live.wake();
    } else if (data.kind === 'bye') {
      tabs.delete(tab);
      if (tabs.size === 0) live.stop();
    }
  };
});
