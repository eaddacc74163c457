//! A table of routes: axum's router, and the methods and paths in it.

use axum::Router;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodRouter, delete, get, post, put};

/// Routes under `/v1` whose handlers have the same state.
pub struct Routes<S> {
    pub router: Router<S>,
    /// Without `/v1`.
    pub paths: Vec<(Method, &'static str)>,
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    pub fn new() -> Self {
        Self { router: Router::new(), paths: Vec::new() }
    }

    pub fn get<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.route(Method::GET, path, get(handler))
    }

    pub fn put<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.route(Method::PUT, path, put(handler))
    }

    pub fn post<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.route(Method::POST, path, post(handler))
    }

    pub fn delete<T: 'static>(self, path: &'static str, handler: impl Handler<T, S>) -> Self {
        self.route(Method::DELETE, path, delete(handler))
    }

    fn route(mut self, method: Method, path: &'static str, handler: MethodRouter<S>) -> Self {
        self.paths.push((method, path));
        Self { router: self.router.route(path, handler), ..self }
    }
}
