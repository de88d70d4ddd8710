//! The theme: colours and font weights for everything that is drawn on the screen or printed as text.
//!
//! Maps each [`TextRole`] to a [`TextStyle`], depending on the terminal's colour depth and background. Does
//! not generate escape sequences. If the background is unknown, all text is readable on both black and white.
//! A test computes the contrast of every colour as defined by the Web Content Accessibility Guidelines (WCAG
//! 2.1).

use super::Colours;

/// The background colour of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Background {
    /// Unknown, so colours must be readable on black and on white.
    #[default]
    Unknown,
    /// Black or nearly black.
    Dark,
    /// White or nearly white.
    Light,
}

/// A colour, in a form that the terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// Index into the terminal's palette. The terminal defines the first 16 colours; the others are xterm's.
    Indexed(u8),
    /// Red, green and blue.
    Rgb(u8, u8, u8),
}

/// Appearance of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "as terminals call them")]
pub struct TextStyle {
    pub text: Option<Colour>,
    pub ground: Option<Colour>,
    pub bold: bool,
    pub dim: bool,
    pub underlined: bool,
    pub reversed: bool,
}

/// The visual role of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// Normal text.
    Plain,
    /// Less important.
    Quiet,
    /// More important.
    Strong,
    /// Column headings.
    Heading,
    /// The line under the cursor.
    Cursor,
    /// A search match.
    Found,
    /// A marked row.
    Marked,
    /// A warning or lost data. Nothing else is shown in red.
    Warning,
    /// Keys in hints and on the help page.
    Key,
    /// A share of 5% or more, highlighted as in perf.
    Costly,
    /// Bars and sparklines.
    Bar,
    /// Source lines between instructions.
    Source,
    /// Names of the kernel's functions.
    Kernel,
    /// Names of generated code.
    Generated,
}

/// Kind of code in a flame-graph box, or state of the waiting threads. Each kind has its own family of hues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum HueFamily {
    Program,
    Library,
    Kernel,
    Generated,
    Unknown,
    /// Kernel code in a graph with waiting time, where blue means waiting.
    KernelAmongWaits,
    Runnable,
    Blocked,
}

/// A text colour: its RGB value and, if one is close enough, the nearest of the 16 basic colours.
type PaletteColour = (u32, Option<u8>);

/// The text colours for one kind of background.
struct Palette {
    quiet: u32,
    found: PaletteColour,
    key: PaletteColour,
    warning: PaletteColour,
    costly: PaletteColour,
    bar: PaletteColour,
    source: PaletteColour,
    kernel: PaletteColour,
    generated: PaletteColour,
}

const DARK: Palette = Palette {
    quiet: 0x9a_9a_9a,
    found: (0xff_9e_e5, Some(13)),
    key: (0x7f_b8_ff, Some(14)),
    warning: (0xff_6b_6b, Some(9)),
    costly: (0xff_b4_54, Some(11)),
    bar: (0xe8_90_4f, Some(3)),
    source: (0x8f_b8_de, Some(6)),
    kernel: (0x56_b6_e0, Some(14)),
    generated: (0x8f_d1_7a, Some(10)),
};
const LIGHT: Palette = Palette {
    quiet: 0x66_66_66,
    found: (0xa3_12_7a, Some(5)),
    key: (0x05_50_ae, Some(4)),
    warning: (0xc0_1c_28, Some(1)),
    costly: (0x99_3d_00, None),
    bar: (0x9a_4a_00, Some(4)),
    source: (0x24_52_7a, Some(4)),
    kernel: (0x0b_5f_8a, Some(4)),
    generated: (0x2c_66_1a, Some(5)),
};
const EITHER: Palette = Palette {
    quiet: 0x76_76_76,
    found: (0xaf_5f_d7, Some(5)),
    key: (0x00_87_af, Some(5)),
    warning: (0xd7_00_00, Some(1)),
    costly: (0xaf_5f_00, None),
    bar: (0xaf_5f_00, Some(5)),
    source: (0x00_87_af, None),
    kernel: (0x00_87_87, None),
    generated: (0x5f_87_00, None),
};

/// Flame-graph colours; black text is legible on all of them.
const PROGRAM: [u32; 5] = [0xe8_71_4a, 0xe0_7f_4d, 0xf0_8c_55, 0xde_70_45, 0xea_9a_66];
const LIBRARY: [u32; 5] = [0xe3_b3_4c, 0xd9_a4_41, 0xed_c1_63, 0xd4_a8_3e, 0xf0_cc_7a];
const KERNEL: [u32; 5] = [0x6f_a8_dc, 0x5b_9b_d5, 0x82_b4_e3, 0x6a_a0_c8, 0x94_c0_ea];
const GENERATED: [u32; 5] = [0x8f_c4_6b, 0x7e_b6_5a, 0xa0_d0_7e, 0x86_b8_68, 0xb0_da_92];
const UNKNOWN: [u32; 5] = [0xa8_a8_a8, 0xb4_b4_b4, 0x9c_9c_9c, 0xc0_c0_c0, 0xae_ae_ae];
const KERNEL_AMONG_WAITS: [u32; 5] = [0x6f_c4_b4, 0x5f_b8_a6, 0x80_d0_c0, 0x68_b8_aa, 0x90_d8_ca];
const RUNNABLE: [u32; 5] = [0xe8_9a_cc, 0xe0_8e_c4, 0xf0_a8_d6, 0xdc_92_c2, 0xf0_b4_da];
const BLOCKED: [u32; 5] = [0x87_a7_f5, 0x7a_99_ee, 0x95_b3_f8, 0x80_9c_f0, 0xa2_bc_fa];
/// Text colour on these boxes.
const INK: u32 = 0x14_14_14;
/// Colours of a box that matches the search, and of the text in it.
const FOUND: (u32, u32) = (0x6a_1b_9a, 0xff_ff_ff);

/// The theme for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    colours: Colours,
    background: Background,
}

impl Theme {
    /// Creates the theme for this colour depth and background.
    pub fn new(colours: Colours, background: Background) -> Self {
        Self { colours, background }
    }

    /// Returns the style of a role. Without colours, roles differ in weight, underlining and reverse video.
    pub fn style(self, role: TextRole) -> TextStyle {
        let palette = match self.background {
            Background::Dark => &DARK,
            Background::Light => &LIGHT,
            Background::Unknown => &EITHER,
        };
        let plain = TextStyle::default();
        let bold = TextStyle { bold: true, ..plain };
        let ink = |ink: PaletteColour| self.ink(ink);
        match role {
            TextRole::Plain => plain,
            // None of the 16 colours is a reliably readable grey, so the text is dimmed instead.
            TextRole::Quiet => match self.colours {
                Colours::None | Colours::Sixteen => TextStyle { dim: true, ..plain },
                _ => TextStyle { text: self.ink((palette.quiet, None)), ..plain },
            },
            TextRole::Strong => bold,
            TextRole::Heading => TextStyle { underlined: true, ..bold },
            TextRole::Cursor => TextStyle { reversed: true, ..plain },
            TextRole::Found => TextStyle { text: ink(palette.found), underlined: true, ..bold },
            TextRole::Marked | TextRole::Key => TextStyle { text: ink(palette.key), ..bold },
            TextRole::Warning => TextStyle { text: ink(palette.warning), ..bold },
            TextRole::Costly => TextStyle { text: ink(palette.costly), ..bold },
            TextRole::Bar => TextStyle { text: ink(palette.bar), ..plain },
            TextRole::Source => TextStyle { text: ink(palette.source), ..plain },
            TextRole::Kernel => TextStyle { text: ink(palette.kernel), ..plain },
            TextRole::Generated => TextStyle { text: ink(palette.generated), ..plain },
        }
    }

    /// Returns the style of a flame-graph box. A name has the same colour in every run. Without colours, only
    /// borders separate the boxes.
    pub fn flame(self, name: &str, family: HueFamily) -> TextStyle {
        let (many, few): (&[u32; 5], &[u8]) = match family {
            HueFamily::Program => (&PROGRAM, &[9]),
            HueFamily::Library => (&LIBRARY, &[3, 11]),
            HueFamily::Kernel => (&KERNEL, &[6, 14]),
            HueFamily::Generated => (&GENERATED, &[2, 10]),
            HueFamily::Unknown => (&UNKNOWN, &[7]),
            HueFamily::KernelAmongWaits => (&KERNEL_AMONG_WAITS, &[6]),
            HueFamily::Runnable => (&RUNNABLE, &[13]),
            HueFamily::Blocked => (&BLOCKED, &[14]),
        };
        // FNV-1a, 32 bits.
        let hash = name
            .bytes()
            .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
            as usize;
        let (ground, text) = match self.colours {
            Colours::None => return TextStyle::default(),
            Colours::Sixteen => (Some(Colour::Indexed(few[hash % few.len()])), Some(Colour::Indexed(0))),
            _ => (self.ink((many[hash % many.len()], None)), self.ink((INK, None))),
        };
        TextStyle { text, ground, ..TextStyle::default() }
    }

    /// Returns the style of a flame-graph box that matches the search.
    pub fn flame_found(self) -> TextStyle {
        let bold = TextStyle { bold: true, ..TextStyle::default() };
        match self.colours {
            Colours::None => TextStyle { underlined: true, ..bold },
            Colours::Sixteen => {
                TextStyle { text: Some(Colour::Indexed(15)), ground: Some(Colour::Indexed(4)), ..bold }
            }
            _ => TextStyle { text: self.ink((FOUND.1, None)), ground: self.ink((FOUND.0, None)), ..bold },
        }
    }

    fn ink(self, (rgb, basic): PaletteColour) -> Option<Colour> {
        match self.colours {
            Colours::None => None,
            Colours::Sixteen => basic.map(Colour::Indexed),
            Colours::Many => Some(Colour::Indexed(nearest(rgb))),
            Colours::All => {
                let [_, red, green, blue] = rgb.to_be_bytes();
                Some(Colour::Rgb(red, green, blue))
            }
        }
    }
}

/// Levels of red, green and blue in xterm's colour cube.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// Returns the RGB value of a colour in xterm's palette. The index must be at least 16, where the colour cube
/// starts; greys follow the cube.
fn xterm(number: u8) -> [u8; 3] {
    match usize::from(number).saturating_sub(16) {
        cube @ 0..216 => [STEPS[cube / 36], STEPS[cube / 6 % 6], STEPS[cube % 6]],
        _ => [8 + 10 * (number - 232); 3],
    }
}

/// Returns the index of the nearest colour in xterm's palette. Skips the first 16, because the terminal
/// defines their colours.
fn nearest(rgb: u32) -> u8 {
    let [_, red, green, blue] = rgb.to_be_bytes();
    let distance = |number: &u8| {
        let [r, g, b] = xterm(*number);
        let square = |a: u8, b: u8, weight: u32| weight * u32::from(a.abs_diff(b)).pow(2);
        // The eye is most sensitive to green.
        square(r, red, 2) + square(g, green, 4) + square(b, blue, 3)
    };
    (16..=255).min_by_key(distance).unwrap_or(15)
}

/// Returns the relative luminance of a colour, as defined by WCAG: 0 (black) to 1 (white).
pub fn luminance([red, green, blue]: [u8; 3]) -> f64 {
    let linear = |part: u8| {
        let part = f64::from(part) / 255.0;
        if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLACK: [u8; 3] = [0; 3];
    const WHITE: [u8; 3] = [255; 3];
    const ROLES: [TextRole; 14] = [
        TextRole::Plain,
        TextRole::Quiet,
        TextRole::Strong,
        TextRole::Heading,
        TextRole::Cursor,
        TextRole::Found,
        TextRole::Marked,
        TextRole::Warning,
        TextRole::Key,
        TextRole::Costly,
        TextRole::Bar,
        TextRole::Source,
        TextRole::Kernel,
        TextRole::Generated,
    ];
    const FAMILIES: [HueFamily; 5] =
        [HueFamily::Program, HueFamily::Library, HueFamily::Kernel, HueFamily::Generated, HueFamily::Unknown];
    const WITH_WAITS: [HueFamily; 7] = [
        HueFamily::Program,
        HueFamily::Library,
        HueFamily::KernelAmongWaits,
        HueFamily::Generated,
        HueFamily::Unknown,
        HueFamily::Runnable,
        HueFamily::Blocked,
    ];
    const DEPTHS: [Colours; 3] = [Colours::Sixteen, Colours::Many, Colours::All];
    /// xterm's default 16 colours: <https://invisible-island.net/xterm/xterm.faq.html>.
    const SIXTEEN: [u32; 16] = [
        0x00_00_00, 0xcd_00_00, 0x00_cd_00, 0xcd_cd_00, 0x00_00_ee, 0xcd_00_cd, 0x00_cd_cd, 0xe5_e5_e5,
        0x7f_7f_7f, 0xff_00_00, 0x00_ff_00, 0xff_ff_00, 0x5c_5c_ff, 0xff_00_ff, 0x00_ff_ff, 0xff_ff_ff,
    ];

    fn rgb(colour: Colour) -> [u8; 3] {
        match colour {
            Colour::Rgb(red, green, blue) => [red, green, blue],
            Colour::Indexed(number @ 0..16) => {
                let [_, red, green, blue] = SIXTEEN[usize::from(number)].to_be_bytes();
                [red, green, blue]
            }
            Colour::Indexed(number) => xterm(number),
        }
    }

    /// Returns the contrast as defined by WCAG, 1 to 21. WCAG requires 4.5 for text and 3 for large or
    /// bold text.
    fn contrast(one: [u8; 3], other: [u8; 3]) -> f64 {
        let (one, other) = (luminance(one) + 0.05, luminance(other) + 0.05);
        one.max(other) / one.min(other)
    }

    #[test]
    fn all_colours_are_legible_on_their_background() {
        for colours in DEPTHS {
            for (background, grounds, least) in [
                (Background::Dark, &[BLACK, [0x1e; 3]][..], 4.5),
                (Background::Light, &[WHITE, [0xfd, 0xf6, 0xe3]][..], 4.5),
                // No single colour can contrast strongly with both.
                (Background::Unknown, &[BLACK, WHITE][..], 3.5),
            ] {
                let theme = Theme::new(colours, background);
                for role in ROLES {
                    let look = theme.style(role);
                    let Some(text) = look.text else { continue };
                    for ground in grounds {
                        let found = contrast(rgb(text), *ground);
                        // The terminal defines the 16 basic colours, so xterm's values need only roughly meet
                        // the limit.
                        let least = if colours == Colours::Sixteen { least - 0.6 } else { least };
                        assert!(
                            found >= least,
                            "{colours:?} {background:?} {role:?}: {found:.2} on {ground:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn flame_graph_boxes_are_legible_on_any_background() {
        for colours in DEPTHS {
            let theme = Theme::new(colours, Background::Unknown);
            let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
            let families = FAMILIES.iter().chain(&WITH_WAITS);
            let boxes = families.flat_map(|family| names.map(|name| theme.flame(name, *family)));
            for look in boxes.chain([theme.flame_found()]) {
                let (Some(text), Some(ground)) = (look.text, look.ground) else { panic!("{look:?}") };
                let found = contrast(rgb(text), rgb(ground));
                assert!(found >= 4.5, "{colours:?} {look:?}: {found:.2}");
            }
        }
    }

    #[test]
    fn colour_families_differ_and_red_means_warning() {
        for colours in DEPTHS {
            for background in [Background::Dark, Background::Light, Background::Unknown] {
                let theme = Theme::new(colours, background);
                let warning = theme.style(TextRole::Warning).text.map(rgb);
                for role in ROLES.into_iter().filter(|role| *role != TextRole::Warning) {
                    let Some([red, green, blue]) = theme.style(role).text.map(rgb) else { continue };
                    let is_red = red > 150 && green < red / 3 && blue < red / 3;
                    assert!(
                        !is_red && warning != Some([red, green, blue]),
                        "{colours:?} {background:?} {role:?}"
                    );
                }
            }
            let theme = Theme::new(colours, Background::Dark);
            let of = |family| ["a", "b", "c", "d", "e"].map(|name| theme.flame(name, family).ground);
            for families in [&FAMILIES[..], &WITH_WAITS] {
                for (at, family) in families.iter().enumerate() {
                    for other in &families[at + 1..] {
                        assert!(
                            of(*family).iter().all(|ground| !of(*other).contains(ground)),
                            "{family:?} {other:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn without_colour_styles_use_bold_and_reverse() {
        let theme = Theme::new(Colours::None, Background::Dark);
        for look in ROLES.map(|role| theme.style(role)).into_iter().chain([theme.flame_found()]) {
            assert!(look.text.is_none() && look.ground.is_none());
        }
        assert_eq!(theme.flame("main", HueFamily::Kernel), TextStyle::default());
        assert!(theme.style(TextRole::Warning).bold && theme.style(TextRole::Cursor).reversed);
    }

    #[test]
    fn nearest_of_256_colours() {
        assert_eq!((nearest(0xaf_5f_00), nearest(0xff_ff_ff), nearest(0x76_76_76)), (130, 231, 243));
        assert_eq!((xterm(16), xterm(231), xterm(255)), (BLACK, WHITE, [238; 3]));
    }
}
