// The shared worker: one stream of the service for all tabs of a browser.

import { Live } from './live.js';

/** @type {Set<MessagePort>} */
const tabs = new Set();
const live = new Live((message) => tabs.forEach((tab) => tab.postMessage(message)));
let isRunning = false;

addEventListener('connect', (event) => {
  const [tab] = /** @type {MessageEvent} */ (event).ports;
  tab.onmessage = ({ data }) => {
    if (data === 'hello') {
      tabs.add(tab);
      if (!isRunning || live.state === 'signed-out') live.start();
      isRunning = true;
      live.snapshot().forEach((message) => tab.postMessage(message));
    } else if (data === 'restart') {
      live.start();
    } else if (data === 'wake') {
      live.wake();
    } else if (data === 'bye') {
      tabs.delete(tab);
      if (tabs.size === 0) live.stop();
      isRunning = tabs.size > 0;
    }
  };
});
