//! What the handler shows of itself: lines of stdout and stderr, and marker files.
//!
//! Reads never block, so that [`Observer::observe`] can bring everything to light that the handler did before a given
//! moment. A handler with much output must not block for want of a reader, and must not use up memory or a CPU core.
//! Beyond a limit its lines are dropped, but still looked through for markers.

use std::io::{self, PipeReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use notbefore_service::clock::Stopwatch;
use notbefore_wire::text::printable;
use regex_lite::Regex;
use tokio::sync::mpsc::UnboundedSender;

use super::marker::path_for;
use super::{HandlerEvent, HandlerSpec, MarkerSource, News};
use crate::recording::Marker;

/// Most bytes of one line: enough for a JSON document with some events.
const LINE_BYTES_MAX: usize = 4 * 1024;
/// Most recorded lines of a handler: a line a second for half an hour.
const LINES_MAX: usize = 2_000;
/// Most recorded bytes of a handler's lines: reports with ten handlers stay readable in a browser.
const BYTES_MAX: usize = 1024 * 1024;
/// More than a recording has entries, so a rehearsal with too many markers ends without a verdict.
const MARKERS_MAX: usize = crate::recording::ENTRIES_MAX + 1;
/// Bytes per read: the size of a pipe.
const CHUNK: usize = 64 * 1024;
/// Most reads of a stream at a time. One empties a pipe; what comes during it may be later than the moment of interest.
const READS_MAX: usize = 2;

/// The streams of a handler.
pub(super) const STREAMS: [usize; 2] = [0, 1];

/// What a read leaves in a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PipeState {
    /// Nothing.
    Empty,
    /// There may be more.
    More,
}

#[derive(Debug)]
pub(super) struct Observer {
    vm: String,
    elapsed: Stopwatch,
    news: UnboundedSender<News>,
    patterns: Vec<(Marker, Regex)>,
    files: Vec<MarkerFile>,
    /// Stdout and stderr.
    streams: [Stream; 2],
    chunk: Vec<u8>,
    lines_left: usize,
    bytes_left: usize,
    is_exhausted: bool,
    markers_left: usize,
}

impl Observer {
    /// The pipes must be non-blocking.
    pub(super) fn new(
        spec: &HandlerSpec,
        vm: &str,
        elapsed: Stopwatch,
        news: UnboundedSender<News>,
        pipes: [PipeReader; 2],
    ) -> Self {
        let (mut patterns, mut files) = (Vec::new(), Vec::new());
        for (&marker, source) in &spec.markers {
            match source {
                MarkerSource::Line(regex) => patterns.push((marker, regex.clone())),
                MarkerSource::File(pattern) => files.push(MarkerFile::new(marker, path_for(pattern, vm))),
                MarkerSource::Call => {}
            }
        }
        Self {
            vm: vm.to_owned(),
            elapsed,
            news,
            patterns,
            files,
            streams: pipes.map(|pipe| Stream { pipe, line: Line::default() }),
            chunk: vec![0; CHUNK],
            lines_left: LINES_MAX,
            bytes_left: BYTES_MAX,
            is_exhausted: false,
            markers_left: MARKERS_MAX,
        }
    }

    pub(super) fn has_files(&self) -> bool {
        !self.files.is_empty()
    }

    /// Whether further lines are dropped.
    pub(super) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    pub(super) fn report(&self, what: HandlerEvent) {
        // Fails when the rehearsal has ended.
        let _ = self.news.send(News { vm: self.vm.clone(), at: self.elapsed.elapsed(), what });
    }

    pub(super) fn report_marker(&mut self, marker: Marker) {
        if let Some(left) = self.markers_left.checked_sub(1) {
            self.markers_left = left;
            self.report(HandlerEvent::Marker(marker));
            if left == 0 {
                let text = format!("further markers are not recorded (limit {MARKERS_MAX} a handler)");
                self.report(HandlerEvent::Line(text));
            }
        }
    }

    /// Reports everything that the handler has shown so far.
    pub(super) fn observe(&mut self) {
        for stream in STREAMS {
            self.read(stream);
        }
        self.check_files();
    }

    /// Ends unfinished lines.
    pub(super) fn end_lines(&mut self) {
        for stream in STREAMS {
            let line = std::mem::take(&mut self.streams[stream].line);
            self.take(&line);
        }
    }

    pub(super) fn check_files(&mut self) {
        let changed: Vec<Marker> =
            self.files.iter_mut().filter_map(|file| file.has_changed().then_some(file.marker)).collect();
        for marker in changed {
            self.report_marker(marker);
        }
    }

    /// Reads what is in a pipe.
    pub(super) fn read(&mut self, stream: usize) -> PipeState {
        let mut chunk = std::mem::take(&mut self.chunk);
        let mut found = PipeState::More;
        for _ in 0..READS_MAX {
            match self.streams[stream].pipe.read(&mut chunk) {
                Ok(length @ 1..) => {
                    for part in chunk[..length].split_inclusive(|&byte| byte == b'\n') {
                        self.streams[stream].line.extend(part.strip_suffix(b"\n").unwrap_or(part));
                        if part.ends_with(b"\n") {
                            let line = std::mem::take(&mut self.streams[stream].line);
                            self.take(&line);
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // No end of file comes: the rehearsal has the other end too.
                Ok(0) | Err(_) => {
                    found = PipeState::Empty;
                    break;
                }
            }
        }
        self.chunk = chunk;
        found
    }

    fn take(&mut self, line: &Line) {
        let text = String::from_utf8_lossy(&line.kept);
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        if !self.is_exhausted {
            let fits = self.lines_left.checked_sub(1).zip(self.bytes_left.checked_sub(text.len()));
            let said = match fits {
                Some((lines, bytes)) => {
                    (self.lines_left, self.bytes_left) = (lines, bytes);
                    let cut = if line.is_cut { "… (line cut at 4 KiB)" } else { "" };
                    format!("{}{cut}", printable(text))
                }
                None => {
                    self.is_exhausted = true;
                    format!("further output is not recorded (limit {LINES_MAX} lines or 1 MiB a handler)")
                }
            };
            self.report(HandlerEvent::Line(said));
        }
        let matching: Vec<Marker> = self
            .patterns
            .iter()
            .filter_map(|(marker, regex)| regex.is_match(text).then_some(*marker))
            .collect();
        for marker in matching {
            self.report_marker(marker);
        }
    }
}

#[derive(Debug)]
struct Stream {
    pipe: PipeReader,
    /// The beginning of an unfinished line.
    line: Line,
}

/// One line, cut at the limit.
#[derive(Debug, Default)]
struct Line {
    kept: Vec<u8>,
    is_cut: bool,
}

impl Line {
    fn extend(&mut self, bytes: &[u8]) {
        let fits = bytes.len().min(LINE_BYTES_MAX - self.kept.len());
        self.kept.extend_from_slice(&bytes[..fits]);
        self.is_cut |= fits < bytes.len();
    }
}

/// A file that is a marker.
#[derive(Debug)]
struct MarkerFile {
    marker: Marker,
    path: PathBuf,
    /// None if there is no file.
    seen: Option<Stamp>,
}

/// Inode, and modification time in seconds and nanoseconds. A file that was replaced within the resolution of the
/// clock has another inode.
type Stamp = (u64, i64, i64);

impl MarkerFile {
    /// A file that exists already is no marker until it changes.
    fn new(marker: Marker, path: PathBuf) -> Self {
        let seen = stamp(&path);
        Self { marker, path, seen }
    }

    /// Whether the file has appeared or changed since the last call.
    fn has_changed(&mut self) -> bool {
        let now = stamp(&self.path);
        let before = std::mem::replace(&mut self.seen, now);
        now.is_some() && now != before
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use rustix::io::ioctl_fionbio;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    struct Bench {
        observer: Observer,
        writers: [io::PipeWriter; 2],
        news: UnboundedReceiver<News>,
    }

    impl Bench {
        fn new(markers: &[(Marker, &str)]) -> Self {
            let [out, err] = [(); 2].map(|()| io::pipe().unwrap());
            for (reader, _) in [&out, &err] {
                ioctl_fionbio(reader, true).unwrap();
            }
            let markers = markers.iter().map(|(marker, source)| (*marker, source.parse().unwrap())).collect();
            let spec = HandlerSpec { command: Vec::new(), repeat: None, markers, keeper: None };
            let (sender, news) = unbounded_channel();
            let observer = Observer::new(&spec, "web-0", Stopwatch::start(), sender, [out.0, err.0]);
            Self { observer, writers: [out.1, err.1], news }
        }

        fn write(&mut self, stream: usize, bytes: &[u8]) {
            self.writers[stream].write_all(bytes).unwrap();
            self.observer.observe();
        }

        fn news(&mut self) -> Vec<HandlerEvent> {
            std::iter::from_fn(|| self.news.try_recv().ok()).map(|news| news.what).collect()
        }
    }

    fn line(text: &str) -> HandlerEvent {
        HandlerEvent::Line(text.to_owned())
    }

    #[test]
    fn lines_are_complete_and_printable() {
        let mut bench = Bench::new(&[]);
        bench.write(0, b"one\r\n\n  \ntw");
        bench.write(1, b"\xff\x1b[31mred\nlast");
        bench.write(0, b"o\n");
        assert_eq!(bench.news(), [line("one"), line("\u{fffd}\\u{1b}[31mred"), line("two")]);
        bench.observer.end_lines();
        assert_eq!(bench.news(), [line("last")]);
    }

    #[test]
    fn long_line_is_cut_and_matched_by_its_beginning() {
        let mut bench = Bench::new(&[(Marker::Drained, "line:^xxx")]);
        for _ in 0..3 {
            bench.write(0, &[b'x'; LINE_BYTES_MAX]);
        }
        bench.write(0, b"\n");
        let expected = format!("{}… (line cut at 4 KiB)", "x".repeat(LINE_BYTES_MAX));
        assert_eq!(bench.news(), [line(&expected), HandlerEvent::Marker(Marker::Drained)]);
    }

    #[test]
    fn markers_are_found_after_the_limit_of_lines() {
        let mut bench = Bench::new(&[(Marker::Drained, "line:drained$"), (Marker::Restored, "line:^un")]);
        for _ in 0..=LINES_MAX {
            bench.write(1, b"again\n");
        }
        assert!(bench.observer.is_exhausted());
        let news = bench.news();
        assert_eq!(news.len(), LINES_MAX + 1);
        assert_eq!(
            news.last(),
            Some(&line("further output is not recorded (limit 2000 lines or 1 MiB a handler)"))
        );
        bench.write(1, b"undrained\n");
        assert_eq!(bench.news(), Marker::ALL.map(HandlerEvent::Marker));
    }

    #[test]
    fn bytes_of_lines_are_limited() {
        let mut bench = Bench::new(&[]);
        let long = [&[b'x'; LINE_BYTES_MAX - 1][..], b"\n"].concat();
        let fitting = BYTES_MAX / (LINE_BYTES_MAX - 1);
        (0..fitting).for_each(|_| bench.write(0, &long));
        assert!(!bench.observer.is_exhausted());
        bench.write(0, &long);
        assert!(bench.observer.is_exhausted());
        assert_eq!(bench.news().len(), fitting + 1);
    }

    #[test]
    fn number_of_markers_is_limited() {
        let mut bench = Bench::new(&[(Marker::Drained, "line:.")]);
        for _ in 0..MARKERS_MAX + 5 {
            bench.write(0, b"x\n");
        }
        let news = bench.news();
        let markers = news.iter().filter(|news| matches!(news, HandlerEvent::Marker(_))).count();
        assert_eq!(markers, MARKERS_MAX);
        let text = format!("further markers are not recorded (limit {MARKERS_MAX} a handler)");
        assert!(news.contains(&line(&text)));
    }

    #[test]
    fn file_is_a_marker_when_it_appears_or_changes() {
        let dir = tempfile::tempdir().unwrap();
        let pattern = format!("file:{}/{{vm}}.flag", dir.path().display());
        let path = dir.path().join("web-0.flag");
        let marker = [HandlerEvent::Marker(Marker::Restored)];
        let touch = |seconds| {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(&path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds)).unwrap();
        };

        let mut bench = Bench::new(&[(Marker::Restored, &pattern)]);
        bench.observer.observe();
        assert_eq!(bench.news(), []);
        touch(1);
        bench.observer.observe();
        assert_eq!(bench.news(), marker);
        bench.observer.observe();
        assert_eq!(bench.news(), []);
        touch(2);
        bench.observer.observe();
        assert_eq!(bench.news(), marker);
        std::fs::remove_file(&path).unwrap();
        bench.observer.observe();
        assert_eq!(bench.news(), []);
        touch(2);
        bench.observer.observe();
        assert_eq!(bench.news(), marker);

        let mut later = Bench::new(&[(Marker::Restored, &pattern)]);
        later.observer.observe();
        assert_eq!(later.news(), [], "the file was there before the handler");
    }
}
