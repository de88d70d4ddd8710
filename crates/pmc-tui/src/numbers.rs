//! Formats numbers for columns: shares, their errors, bars and sparklines.

use pmc_text::text::right;

/// Formats a share (0 to 1) as a percentage, seven columns wide.
pub fn percent(share: f64) -> String {
    format!("{:6.2}%", share * 100.0)
}

/// Formats a share's error (half the width of its confidence interval), six columns wide.
pub fn error(half: f64) -> String {
    let percent = half * 100.0;
    let text = if percent >= 9.95 {
        format!("±{percent:.0}")
    } else if percent >= 0.095 {
        format!("±{percent:.1}")
    } else {
        format!("±{percent:.2}")
    };
    right(&text, 6)
}

/// Returns a bar of `width` columns. The part for the function's own share is solid, with a resolution of an
/// eighth of a column. The part for its callees is lighter.
pub fn bar(own: f64, total: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let part = |share: f64| share.clamp(0.0, 1.0) * width as f64;
    let eighths = (part(own) * 8.0).round() as usize;
    let mut out = "█".repeat(eighths / 8);
    out.push_str(EIGHTHS[eighths % 8]);
    let used = eighths.div_ceil(8);
    let light = (part(total).round() as usize).saturating_sub(used);
    out.push_str(&"░".repeat(light));
    out.push_str(&" ".repeat(width - used - light));
    out
}

/// Returns a sparkline with one column per number. Zero is a blank; any other number is visible.
pub fn sparks(values: &[u64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    let step = |value: &u64| match *value {
        0 => ' ',
        value => STEPS[((value as f64 / most as f64 * 8.0).ceil() as usize).clamp(1, 8) - 1],
    };
    values.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_and_sparklines_are_drawn() {
        assert_eq!(bar(0.25, 0.5, 8), "██░░    ");
        assert_eq!(bar(1.0, 0.3, 4), "████");
        assert_eq!(bar(0.3, 0.9, 10), "███░░░░░░ ");
        assert_eq!(bar(0.33, 0.9, 10), "███▎░░░░░ ");
        assert_eq!(bar(0.99, 1.0, 10), "█████████▉");
        assert_eq!(bar(0.001, 0.02, 10), "          ");
        assert_eq!(sparks(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(percent(0.1234), " 12.34%");
        assert_eq!(error(0.004), "  ±0.4");
    }
}
