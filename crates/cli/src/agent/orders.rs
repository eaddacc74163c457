//! Signal handlers that send orders to the agent.

use anyhow::Result;
use notbefore_agent::run::Order;
use tokio::sync::mpsc;

/// SIGTERM and SIGINT stop, SIGHUP reloads; runs as long as the runtime.
#[cfg(unix)]
pub fn listen(orders: mpsc::Sender<Order>) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        loop {
            let order = tokio::select! {
                _ = terminate.recv() => Order::Stop,
                _ = interrupt.recv() => Order::Stop,
                _ = hang_up.recv() => Order::Reload,
            };
            if orders.send(order).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}

/// Console events stop the agent; the service control manager uses `windows/service.rs`.
#[cfg(windows)]
pub fn listen(orders: mpsc::Sender<Order>) -> Result<()> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    let mut close = tokio::signal::windows::ctrl_close()?;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = close.recv() => {}
            }
            if orders.send(Order::Stop).await.is_err() {
                return;
            }
        }
    });
    Ok(())
}
