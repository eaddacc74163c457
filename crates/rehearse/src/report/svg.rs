//! A timeline as inline SVG, in the colours and shapes of the console's: a lane for each event with a bar from its
//! announcement to its end, and a lane for each VM with the requests of its handler.
//!
//! Positions along the time axis are percentages, and heights are pixels. So the picture follows the width of the page and
//! its letters keep their size. Colours are classes; [`super::html`] has the style sheet.

use notbefore_wire::operator::EventType;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use notbefore_wire::text::{counted, shorten};

use super::describe::{self, Detail};
use super::markup::escape;
use super::rows::Kind;
use crate::recording::{Entry, Marker, RecordedEvent, Recording, Request, What};

/// Lanes of VMs that are drawn at most; those with cited entries come first. More make the picture unreadable.
const LANES_MAX: usize = 24;

/// Events that are drawn at most.
const EVENTS_MAX: usize = 24;

/// Shapes of a lane that are drawn at most, besides ticks of polls.
const SHAPES_MAX: usize = 200;

/// Ticks of polls have so many places along the axis; a place has one tick.
const PLACES: f64 = 1000.0;

/// Longest label of a lane, in characters: a phone's width. The title has all of it.
const LABEL_CHARS_MAX: usize = 56;

const AXIS_HEIGHT: usize = 22;
const STEPS_HEIGHT: usize = 16;
const LABEL_HEIGHT: usize = 17;
const TRACK_HEIGHT: usize = 20;
const LANE_HEIGHT: usize = LABEL_HEIGHT + TRACK_HEIGHT + 6;

/// Steps of the axis in seconds; the axis has at most eight ticks.
const AXIS_STEPS: [f64; 16] =
    [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0];
const AXIS_TICKS_MAX: f64 = 8.0;

/// Shapes of happenings, around their middle.
const DIAMOND: &str = "M0-7L7 0L0 7L-7 0Z";
const DOWN: &str = "M-5-5H5L0 4Z";
const UP: &str = "M-5 4H5L0-5Z";
const SQUARE: &str = "M-4-4H4V4H-4Z";
const CROSS: &str = "M-5-5L5 5M5-5L-5 5";
const STEP: &str = "M-4-4H4L0 4Z";

pub fn timeline(recording: &Recording, cited: &BTreeSet<usize>) -> String {
    let scale = Scale { whole: whole(recording) };
    let mut lanes = String::new();
    let mut top = AXIS_HEIGHT;
    lanes += &steps(recording, scale, top);
    top += STEPS_HEIGHT;
    for (name, event) in recording.events.iter().take(EVENTS_MAX) {
        lanes += &event_lane(name, event, scale, top);
        top += LANE_HEIGHT;
    }
    let vms = lanes_of(recording, cited);
    for vm in vms.iter().take(LANES_MAX) {
        lanes += &vm_lane(recording, vm, scale, cited, top);
        top += LANE_HEIGHT;
    }
    let mut text = format!(
        "<svg class=\"timeline\" role=\"img\" aria-label=\"Timeline of {}\" width=\"100%\" height=\"{top}\">\n{}{lanes}</svg>\n",
        escape(&recording.scenario),
        axis(scale, top)
    );
    let not_drawn = [
        (recording.events.len().saturating_sub(EVENTS_MAX), "event"),
        (vms.len().saturating_sub(LANES_MAX), "VM"),
    ];
    for (count, noun) in not_drawn.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "<p class=\"quiet\">{} more not drawn.</p>", counted(count, noun));
    }
    text
}

/// VMs with a handler or with entries; those that a failure cites come first.
fn lanes_of<'a>(recording: &'a Recording, cited: &BTreeSet<usize>) -> Vec<&'a str> {
    let of = |entry: &'a Entry| entry.vm.as_deref();
    let first: BTreeSet<&str> = cited.iter().filter_map(|index| of(recording.entries.get(*index)?)).collect();
    let handled = recording.handled_vms.iter().map(String::as_str);
    let all: BTreeSet<&str> = recording.entries.iter().filter_map(of).chain(handled).collect();
    first.iter().copied().chain(all.difference(&first).copied()).collect()
}

/// The time that the picture shows, in seconds. An entry can be later than the end of the rehearsal: the handler's exit.
fn whole(recording: &Recording) -> f64 {
    let last = recording.entries.iter().map(|entry| entry.at).max().unwrap_or_default();
    // Shapes at the end stay within the picture.
    recording.ended_at.max(last).as_secs_f64().max(0.1) * 1.02
}

/// Maps instants to the time axis.
#[derive(Clone, Copy)]
struct Scale {
    /// Seconds.
    whole: f64,
}

impl Scale {
    /// From 0 to 1, with room for the shapes at the beginning.
    fn fraction(self, at: Duration) -> f64 {
        (0.012 + 0.988 * at.as_secs_f64() / self.whole).clamp(0.0, 1.0)
    }

    fn percent(self, at: Duration) -> String {
        format!("{:.2}%", self.fraction(at) * 100.0)
    }

    fn width(self, from: Duration, to: Duration) -> String {
        format!("{:.2}%", (self.fraction(to) - self.fraction(from)).max(0.0) * 100.0)
    }
}

fn axis(scale: Scale, height: usize) -> String {
    let step = AXIS_STEPS.into_iter().find(|step| scale.whole / step <= AXIS_TICKS_MAX);
    let step = step.unwrap_or(scale.whole / AXIS_TICKS_MAX);
    let mut text = String::new();
    let ticks = (0_u32..).map(|number| f64::from(number) * step).take_while(|at| *at < scale.whole * 0.92);
    for seconds in ticks.take(AXIS_TICKS_MAX as usize + 1) {
        let x = scale.percent(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let label = (seconds * 10.0).round() / 10.0;
        let _ = writeln!(
            text,
            "<line class=\"grid\" x1=\"{x}\" x2=\"{x}\" y1=\"0\" y2=\"{height}\"/><text class=\"tick\" x=\"{x}\" dx=\"4\" y=\"13\">{label} s</text>"
        );
    }
    text
}

/// A shape at an instant, with its description.
fn shape(class: &str, path: &str, x: &str, y: usize, title: &str) -> String {
    format!(
        "<svg x=\"{x}\" y=\"{y}\" class=\"at\"><path class=\"{class}\" d=\"{path}\"><title>{}</title></path></svg>\n",
        escape(title)
    )
}

/// What happened and when.
fn title(recording: &Recording, entry: &Entry) -> String {
    format!("{}: {}", describe::instant(entry.at), describe::entry(recording, entry, Detail::Short))
}

fn steps(recording: &Recording, scale: Scale, top: usize) -> String {
    let steps = recording.entries.iter().filter(|entry| Kind::of(&entry.what) == Kind::Step);
    steps
        .take(SHAPES_MAX)
        .map(|entry| {
            let title = title(recording, entry);
            shape("step", STEP, &scale.percent(entry.at), top + STEPS_HEIGHT / 2, &title)
        })
        .collect()
}

fn label(text: &str, top: usize, class: &str) -> String {
    format!(
        "<text class=\"{class}\" x=\"0\" y=\"{}\">{}<title>{}</title></text>\n",
        top + LABEL_HEIGHT - 4,
        escape(&shorten(text, LABEL_CHARS_MAX)),
        escape(text)
    )
}

fn symbol(event_type: &EventType) -> &'static str {
    match event_type {
        EventType::Freeze => "❄",
        EventType::Reboot => "↻",
        EventType::Redeploy => "⇄",
        EventType::Preempt => "⏏",
        EventType::Terminate => "✕",
        EventType::SpotRebalanceRecommendation | EventType::Unknown(_) => "•",
    }
}

fn event_lane(name: &str, event: &RecordedEvent, scale: Scale, top: usize) -> String {
    let vms = describe::names(event.resources.iter().map(String::as_str));
    let end = if event.is_cancelled { ", cancelled" } else { "" };
    let about = format!("{} {name}: {} of {vms}{end}", symbol(&event.event_type), event.event_type);
    let class = if event.is_cancelled { "label struck" } else { "label" };
    let mut text = label(&about, top, class);
    let y = top + LABEL_HEIGHT;
    let last = Duration::try_from_secs_f64(scale.whole).unwrap_or_default();
    let gone_at = event.gone_at.unwrap_or(last);
    let started_at = event.started_at.unwrap_or(gone_at).min(gone_at);
    let approved_at = event.approved_at.unwrap_or(started_at).min(started_at);
    let stages = [
        ("scheduled", "Scheduled", event.scheduled_at, approved_at),
        ("approved", "approved", approved_at, started_at),
        ("started", "Started", started_at, gone_at),
    ];
    for (class, stage, from, to) in stages.into_iter().filter(|(_, _, from, to)| from < to) {
        let class = if event.is_cancelled { "ended" } else { class };
        let title = format!("{name}: {stage} from {} to {}", describe::instant(from), describe::instant(to));
        let _ = writeln!(
            text,
            "<rect class=\"bar {class}\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{TRACK_HEIGHT}\" rx=\"5\"><title>{}</title></rect>",
            scale.percent(from),
            scale.width(from, to),
            escape(&title)
        );
    }
    if let Some(at) = event.not_before {
        let title = format!("{name}: NotBefore {}", describe::instant(at));
        let _ = writeln!(
            text,
            "<rect class=\"due\" x=\"{}\" y=\"{y}\" width=\"3\" height=\"{TRACK_HEIGHT}\"><title>{}</title></rect>",
            scale.percent(at.min(last)),
            escape(&title)
        );
    }
    text
}

fn vm_lane(recording: &Recording, vm: &str, scale: Scale, cited: &BTreeSet<usize>, top: usize) -> String {
    let mut text = label(vm, top, "label");
    let (y, middle) = (top + LABEL_HEIGHT, top + LABEL_HEIGHT + TRACK_HEIGHT / 2);
    let _ = writeln!(
        text,
        "<rect class=\"track\" x=\"0\" y=\"{y}\" width=\"100%\" height=\"{TRACK_HEIGHT}\" rx=\"5\"/>"
    );
    let mut ticks = Ticks::default();
    let (mut shapes, mut rings) = (String::new(), String::new());
    let mut count = 0;
    for (index, entry) in recording.entries.iter().enumerate() {
        if entry.vm.as_deref() != Some(vm) {
            continue;
        }
        if let What::Request(request) = &entry.what
            && !request.is_approval()
        {
            ticks.add(scale.fraction(entry.at), request, Kind::of(&entry.what) == Kind::FailedRequest);
        }
        if let Some((class, path)) = look(&entry.what)
            && count < SHAPES_MAX
        {
            count += 1;
            // A marker and the approval after it are often at the same place.
            let height = if class == "marker" { y } else { middle };
            shapes += &shape(class, path, &scale.percent(entry.at), height, &title(recording, entry));
        }
        if cited.contains(&index) {
            let (x, title) = (scale.percent(entry.at), escape(&title(recording, entry)));
            let _ = writeln!(
                rings,
                "<circle class=\"cited\" cx=\"{x}\" cy=\"{middle}\" r=\"10\"><title>{title}</title></circle>"
            );
        }
    }
    text + &ticks.draw(y) + &shapes + &rings
}

/// Class and shape of a happening on the lane of a VM. Polls are [`Ticks`].
fn look(what: &What) -> Option<(&'static str, &'static str)> {
    match what {
        What::Request(request) if request.is_approval() && Kind::of(what) == Kind::FailedRequest => {
            Some(("approval failed", DIAMOND))
        }
        What::Request(request) if request.is_approval() => Some(("approval", DIAMOND)),
        What::Marker { marker: Marker::Drained } => Some(("marker", DOWN)),
        What::Marker { marker: Marker::Restored } => Some(("marker", UP)),
        What::HandlerExited { code: Some(0), .. } | What::HandlerStopped => Some(("handler", SQUARE)),
        What::HandlerExited { .. } => Some(("crash", CROSS)),
        What::Request(_)
        | What::Output { .. }
        | What::HandlerStarted
        | What::Step { .. }
        | What::Event { .. } => None,
    }
}

/// Polls and other requests of a lane: short ticks; longer ones for a new document and for errors.
#[derive(Default)]
struct Ticks {
    same: BTreeSet<usize>,
    changed: BTreeSet<usize>,
    failed: BTreeSet<usize>,
    incarnation: Option<u64>,
}

impl Ticks {
    fn add(&mut self, fraction: f64, request: &Request, is_failed: bool) {
        let is_changed = request.incarnation.is_some() && request.incarnation != self.incarnation;
        self.incarnation = request.incarnation.or(self.incarnation);
        let ticks = match (is_failed, is_changed) {
            (true, _) => &mut self.failed,
            (false, true) => &mut self.changed,
            (false, false) => &mut self.same,
        };
        ticks.insert((fraction * PLACES) as usize);
    }

    fn draw(&self, y: usize) -> String {
        let mut text = format!(
            "<svg x=\"0\" y=\"{y}\" width=\"100%\" height=\"{TRACK_HEIGHT}\" viewBox=\"0 0 {PLACES} 20\" preserveAspectRatio=\"none\">"
        );
        for (class, places, from, to) in [
            ("poll", &self.same, 7, 13),
            ("poll changed", &self.changed, 3, 17),
            ("poll failed", &self.failed, 3, 17),
        ] {
            if !places.is_empty() {
                let path: String = places.iter().map(|place| format!("M{place} {from}V{to}")).collect();
                let _ = write!(text, "<path class=\"{class}\" d=\"{path}\"/>");
            }
        }
        text + "</svg>\n"
    }
}
