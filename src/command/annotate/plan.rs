//! `pmc annotate`: what was typed, turned into what it means, without clap's types.

use std::path::PathBuf;

use crate::analysis::AnalysisRequest;
use crate::analysis::annotate::AnnotationRequest;
use crate::analysis::annotate::listing::ListingOptions;
use crate::analysis::request::Measure;
use crate::cli::annotate::Annotate;
use crate::command::plan;
use crate::command::recording_screen::ScreenPlan;
use crate::error::Result;
use crate::profile::annotate::Basis;
use crate::symbol::disassemble::Syntax;
use crate::terminal::Stream;
use crate::view::annotate::Layout;

/// How many functions are shown where nobody says so: clap's default.
const FUNCTIONS: usize = 3;

/// What `pmc annotate` does.
#[derive(Debug)]
pub(in crate::command) struct Plan {
    pub(super) input: PathBuf,
    /// Nothing was typed that asks for text: a terminal shows the screen.
    pub(super) browses: bool,
    pub(super) request: AnalysisRequest,
    pub(super) code: AnnotationRequest,
    pub(super) layout: Layout,
}

impl Plan {
    /// # Errors
    /// When something typed means nothing here.
    pub(in crate::command) fn new(typed: &Annotate) -> Result<Self> {
        let function = typed.function.clone().or_else(|| typed.symbol.clone());
        let of_text = typed.stdio || typed.json || typed.source_only || typed.print_line || typed.full_paths;
        let of_columns = typed.show_nr_samples || typed.asm_raw || typed.percent_type != "local-period";
        let of_length = typed.max_rows > 0 || typed.percent_limit.is_some() || typed.functions != FUNCTIONS;
        Ok(Self {
            input: plan::input(typed.input.as_ref()),
            browses: !(of_text || of_columns || of_length),
            request: AnalysisRequest {
                selection: plan::selection(&typed.filter)?,
                callers: false,
                ..AnalysisRequest::new(plan::symbol_options(&typed.symbol_files))
            },
            code: AnnotationRequest {
                most: if function.is_some() { 0 } else { typed.functions },
                function,
                dsos: typed.dsos.clone(),
                limit: typed.percent_limit.unwrap_or(0.0),
                options: ListingOptions {
                    syntax: if typed.disassembler_style == "intel" { Syntax::Intel } else { Syntax::Att },
                    with_source: !typed.no_source,
                    symfs: typed.symbol_files.symfs.clone(),
                    kcore: typed.kcore.clone(),
                },
            },
            layout: Layout {
                json: typed.json,
                basis: match typed.percent_type.as_str() {
                    "local-hits" | "hits-local" => Basis::LocalHits,
                    "global-period" | "period-global" => Basis::GlobalPeriod,
                    "global-hits" | "hits-global" => Basis::GlobalHits,
                    _ => Basis::LocalPeriod,
                },
                source: !typed.no_source,
                instructions: !typed.source_only,
                show_samples: typed.show_nr_samples,
                file_names: typed.print_line,
                full_paths: typed.full_paths,
                raw_bytes: typed.asm_raw,
                rows: if typed.max_rows == 0 { usize::MAX } else { typed.max_rows },
                colour: Stream::Output.has_colour(),
            },
        })
    }

    /// The same, for a screen: it begins with the code, and shows all that a report's does.
    pub(super) fn screen(self) -> ScreenPlan {
        let request = AnalysisRequest {
            usual_keys: true,
            measure: Measure::BranchesIfRecorded,
            callers: true,
            ..self.request
        };
        let opening = AnnotationRequest { most: 1, ..self.code };
        ScreenPlan { opening: Some(opening), ..ScreenPlan::new(&self.input, request) }
    }
}
