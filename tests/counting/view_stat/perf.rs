//! perf as the oracle for fields, order and number formats: its own lines are parsed into counts and printed
//! again. Metrics are left out, because perf computes them from more digits than it shows.

use super::*;

/// A parsed line of perf's output.
struct Line {
    time: Option<f64>,
    place: String,
    summed: Option<u32>,
    number: String,
    unit: String,
    event: String,
    running_ns: u64,
}

fn of_json(line: &str) -> Line {
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    let text = |key: &str| line[key].as_str().unwrap().to_owned();
    let place = ["cpu", "core", "die", "socket", "node", "thread"].iter().find_map(|key| line[*key].as_str());
    Line {
        time: line["interval"].as_f64(),
        place: place.unwrap_or_default().to_owned(),
        summed: line["aggregate-number"].as_u64().map(|n| n as u32),
        number: text("counter-value"),
        unit: text("unit"),
        event: text("event"),
        running_ns: line["event-runtime"].as_u64().unwrap(),
    }
}

fn of_csv(line: &str, mode: &[&str], aggregation: Aggregation) -> Line {
    let mut fields = line.split(';').map(str::to_owned);
    let mut next = || fields.next().unwrap();
    let time = mode.contains(&"-I").then(|| next().trim().parse().unwrap());
    let place = if aggregation == Aggregation::Global { String::new() } else { next() };
    let is_summed = !matches!(aggregation, Aggregation::Global | Aggregation::Cpu | Aggregation::Thread);
    let summed = is_summed.then(|| next().parse().unwrap());
    let (number, unit, event) = (next(), next(), next());
    if mode.contains(&"-r") {
        next();
    }
    Line { time, place, summed, number, unit, event, running_ns: next().parse().unwrap() }
}

fn place(word: &str, aggregation: Aggregation) -> PlaceLabel {
    let numbers: Vec<u32> =
        word.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
    let at = |n: usize| numbers.get(n).copied();
    match aggregation {
        Aggregation::Global => PlaceLabel::default(),
        Aggregation::Cpu => PlaceLabel { cpu: at(0), ..Default::default() },
        Aggregation::Core => PlaceLabel { socket: at(0), die: at(1), core: at(2), ..Default::default() },
        Aggregation::Cluster => {
            PlaceLabel { socket: at(0), die: at(1), cluster: at(2), ..Default::default() }
        }
        Aggregation::Cache(_) => {
            PlaceLabel { socket: at(0), die: at(1), cache: at(2).zip(at(3)), ..Default::default() }
        }
        Aggregation::Die => PlaceLabel { socket: at(0), die: at(1), ..Default::default() },
        Aggregation::Socket => PlaceLabel { socket: at(0), ..Default::default() },
        Aggregation::Node => PlaceLabel { node: at(0), ..Default::default() },
        Aggregation::Children | Aggregation::Levels => unreachable!("perf has no parts"),
        Aggregation::Thread => {
            let (comm, tid) = word.rsplit_once('-').unwrap();
            PlaceLabel { thread: Some((comm.into(), tid.parse().unwrap())), ..Default::default() }
        }
    }
}

fn counts(line: &Line, aggregation: Aggregation, runs: usize) -> StatCounts {
    let role = match line.event.as_str() {
        "task-clock" => EventRole::TaskClock,
        "duration_time" => EventRole::DurationTime,
        _ => EventRole::Other,
    };
    let (scale, unit) = role.shown_in().unwrap_or((1.0, ""));
    assert_eq!(unit, line.unit, "perf's unit");
    let number = line.number.parse::<f64>().map(|n| (n / scale).round());
    let value = match (number, line.number.as_str()) {
        (Ok(number), _) if runs > 1 => StatValue::Counted {
            count: Count { value: 0, enabled_ns: 2 * line.running_ns, running_ns: 2 * line.running_ns },
            counters: 1,
            runs: vec![number; runs],
        },
        (Ok(number), _) => counted(number as u64, line.running_ns),
        (Err(_), "<not supported>") => unsupported(),
        (Err(_), "<not counted>") => StatValue::NotCounted(MissingValueReason::new("asleep", "")),
        (Err(_), other) => panic!("perf prints `{other}`"),
    };
    StatCounts {
        events: vec![StatEvent { scale, unit: unit.into(), ..event(&line.event, role) }],
        rows: vec![row(place(&line.place, aggregation), line.summed.unwrap_or(1), vec![value])],
        aggregation,
        timestamp_ns: line.time.map(|t| (t * 1e9).round() as u64),
        elapsed_ns: 1,
        runs: vec![RunTime::default(); if runs > 1 { runs } else { 0 }],
        ..Default::default()
    }
}

/// Returns perf's lines in a format, or `None` if perf is not available.
fn ask(form: &str, mode: &[&str]) -> Option<Vec<String>> {
    let events = "task-clock,context-switches,page-faults,cycles,duration_time";
    let all = [&["stat", form, "-e", events], mode, &["--", "sleep", "0.03"]].concat();
    let out = kit::oracle::ask("perf", &all);
    if !kit::need("perf_events", out.status.success(), "perf stat does not run here") {
        return None;
    }
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    // Other messages, for instance about threads that end meanwhile, are not perf's data lines.
    let is_line = |line: &&str| if form == "-j" { line.starts_with('{') } else { line.contains(';') };
    let lines: Vec<String> = text.lines().filter(is_line).map(str::to_owned).collect();
    assert!(lines.len() >= 5, "{form} {mode:?}: {text}");
    Some(lines)
}

/// Whether the installed perf has 6.1's layout: others use different key names.
fn is_6_1() -> bool {
    if !kit::need_program("perf") {
        return false;
    }
    let version = kit::oracle::says("perf", &["--version"]);
    kit::need(
        "perf6.1",
        version.contains(" 6.1."),
        &format!("the oracle is perf 6.1, this is {}", version.trim()),
    )
}

/// Returns the line without the metric and without the variance, which two equal runs do not have.
fn comparable(line: &str) -> String {
    let line = line.split("\"metric-value\"").next().unwrap();
    if let Some((before, after)) = line.split_once("\"variance\" : ") {
        return format!("{before}{}", after.split_once(',').unwrap().1);
    }
    if line.starts_with('{') {
        return line.to_owned();
    }
    let fields: Vec<&str> = line.split(';').collect();
    let kept: Vec<&str> = fields[..fields.len() - 2].iter().copied().filter(|f| !f.ends_with('%')).collect();
    format!("{} ({} fields)", kept.join(";"), fields.len())
}

#[test]
fn perf_stat_report_prints_the_same_lines() {
    if !is_6_1() {
        return;
    }
    let pid = std::process::id().to_string();
    let modes: [(&[&str], Aggregation); 9] = [
        (&[], Aggregation::Global),
        (&["-r", "2"], Aggregation::Global),
        (&["-I", "20"], Aggregation::Global),
        (&["-a", "-A"], Aggregation::Cpu),
        (&["-a", "--per-core"], Aggregation::Core),
        (&["-a", "--per-die", "-I", "20"], Aggregation::Die),
        (&["-a", "--per-socket"], Aggregation::Socket),
        (&["-a", "--per-node"], Aggregation::Node),
        (&["--per-thread", "-p", &pid], Aggregation::Thread),
    ];
    for (mode, aggregation) in modes {
        let runs = if mode.contains(&"-r") { 2 } else { 1 };
        let style = StatStyle { separator: ";".into(), ..plain() };
        let (Some(objects), Some(records)) = (ask("-j", mode), ask("-x;", mode)) else { return };
        for theirs in objects {
            let counts = counts(&of_json(&theirs), aggregation, runs);
            let ours = written(|out| json::write(out, &counts, &style));
            assert_eq!(comparable(&ours), comparable(&theirs), "{mode:?}");
        }
        for theirs in records {
            let counts = counts(&of_csv(&theirs, mode, aggregation), aggregation, runs);
            let ours = written(|out| csv::write(out, &counts, &style));
            assert_eq!(comparable(ours.trim_end()), comparable(&theirs), "{mode:?}");
        }
    }
}
