//! Separates typed keys from the terminal's reply to the query for its background colour.
//!
//! ```text
//!   ESC ]11;rgb:ffff/ffff/ffff ESC \     arrives as keys: Alt-], 1, 1, ;, r, g, b, …, Alt-\
//! ```
//! Separates the user's input from the terminal's replies. Returns the input events and the background
//! colour. It never waits, so a late or missing reply neither causes a delay nor loses keys.

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};

use super::ScreenMessage;
use pmc_text::terminal::theme::{Background, luminance};

/// Maximum length of a reply.
const LONGEST: usize = 40;

/// The received part of a possible reply.
#[derive(Debug)]
pub(super) struct AnswerFilter {
    /// Whether a reply is still expected.
    is_due: bool,
    held: Vec<Event>,
    text: String,
}

impl AnswerFilter {
    pub(super) fn new(is_due: bool) -> Self {
        Self { is_due, held: Vec::new(), text: String::new() }
    }

    /// Processes an event and returns the resulting messages. Typed keys are returned in order, as soon as
    /// they can no longer be part of a reply.
    pub(super) fn take(&mut self, event: Event) -> Vec<ScreenMessage> {
        let key = match &event {
            Event::Key(key) if self.is_due => *key,
            Event::Key(_) => return vec![ScreenMessage::Input(event)],
            // Events other than keys may arrive in the middle of a reply; they are not part of it.
            _ => return vec![ScreenMessage::Input(event)],
        };
        self.held.push(event);
        if self.held.len() == 1 {
            return if is(&key, ']', KeyModifiers::ALT) { Vec::new() } else { self.give_up(true) };
        }
        if is(&key, '\\', KeyModifiers::ALT) || is(&key, 'g', KeyModifiers::CONTROL) {
            return match answered(&self.text) {
                Some(background) => {
                    *self = Self::new(false);
                    vec![ScreenMessage::Background(background)]
                }
                None => self.give_up(false),
            };
        }
        match key.code {
            KeyCode::Char(c) if self.held.len() < LONGEST && could_be(&self.text, c) => {
                self.text.push(c);
                Vec::new()
            }
            _ => self.give_up(true),
        }
    }

    fn give_up(&mut self, is_due: bool) -> Vec<ScreenMessage> {
        let before = std::mem::replace(self, Self::new(is_due));
        before.held.into_iter().map(ScreenMessage::Input).collect()
    }
}

fn is(key: &KeyEvent, c: char, with: KeyModifiers) -> bool {
    key.code == KeyCode::Char(c) && key.modifiers.contains(with)
}

/// Whether `c` can be the next character of a reply that starts with `text`.
fn could_be(text: &str, c: char) -> bool {
    const BEGINNING: &str = "11;rgb";
    match BEGINNING.chars().nth(text.len()) {
        Some(next) => c == next,
        None => c.is_ascii_hexdigit() || matches!(c, ':' | '/' | 'a'),
    }
}

/// Parses `11;rgb:RRRR/GGGG/BBBB`, with one to four digits per colour; `rgba:` has a fourth number.
fn answered(text: &str) -> Option<Background> {
    let (_, numbers) = text.split_once(':')?;
    let mut parts = numbers.split('/').map(|digits| {
        let most = 16_u32.checked_pow(u32::try_from(digits.len()).ok()?)?.checked_sub(1)?;
        Some((u32::from_str_radix(digits, 16).ok()? * 255).checked_div(most)? as u8)
    });
    let mut next = || parts.next()?;
    let light = luminance([next()?, next()?, next()?]);
    // Above this luminance, black text has more contrast than white text.
    Some(if light > 0.18 { Background::Light } else { Background::Dark })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(typed: &str) -> Vec<Event> {
        let mut after_escape = false;
        let mut events = Vec::new();
        for c in typed.chars() {
            let with = match (c, after_escape) {
                ('\x1b', _) => {
                    after_escape = true;
                    continue;
                }
                (_, true) => KeyModifiers::ALT,
                ('\x07', _) => KeyModifiers::CONTROL,
                _ => KeyModifiers::NONE,
            };
            after_escape = false;
            let c = if c == '\x07' { 'g' } else { c };
            events.push(Event::Key(KeyEvent::new(KeyCode::Char(c), with)));
        }
        events
    }

    /// Returns the user's input events, and the background colour from the terminal's reply.
    fn told(is_due: bool, came: &str) -> (Vec<Event>, Option<Background>) {
        let mut filter = AnswerFilter::new(is_due);
        let (mut typed, mut background) = (Vec::new(), None);
        for message in keys(came).into_iter().flat_map(|event| filter.take(event)) {
            match message {
                ScreenMessage::Input(event) => typed.push(event),
                ScreenMessage::Background(found) => background = Some(found),
                other => panic!("{other:?}"),
            }
        }
        (typed, background)
    }

    #[test]
    fn terminal_reply_is_removed_from_input() {
        for (answer, background) in [
            ("\x1b]11;rgb:ffff/ffff/ffff\x1b\\", Background::Light),
            ("\x1b]11;rgb:fd/f6/e3\x07", Background::Light),
            ("\x1b]11;rgb:0000/2b2b/3636\x07", Background::Dark),
            ("\x1b]11;rgba:0/0/0/f\x1b\\", Background::Dark),
        ] {
            let (typed, found) = told(true, &format!("jj{answer}k2"));
            assert_eq!((typed, found), (keys("jjk2"), Some(background)), "{answer:?}");
        }
    }

    #[test]
    fn other_input_is_passed_through() {
        let answer = "\x1b]11;rgb:ffff/ffff/ffff\x1b\\";
        for (is_due, came) in [
            (true, "\x1b]11;x"),
            (true, "\x1b]q"),
            (true, "12;rgb"),
            (true, "\x1b]11;rgb:zz"),
            (true, "\x1b]11;rgb:/\x07j"),
            (false, answer),
        ] {
            assert_eq!(told(is_due, came), (keys(came), None), "{came:?}");
        }
        // Only one reply is expected.
        assert_eq!(told(true, &format!("{answer}{answer}")), (keys(answer), Some(Background::Light)));
        let endless = format!("\x1b]11;rgb:{}", "f".repeat(80));
        assert_eq!(told(true, &endless), (keys(&endless), None));
    }
}
