//! Converts the parsed options of `pmc annotate` into a plan without clap's types.

use std::path::PathBuf;

use crate::cli::annotate::AnnotateArgs;
use pmc_analysis::analysis::AnalysisRequest;
use pmc_analysis::analysis::annotate::AnnotationRequest;
use pmc_analysis::analysis::annotate::listing::ListingOptions;
use pmc_analysis::analysis::request::CostMeasure;
use pmc_analysis::profile::annotate::PercentBasis;
use pmc_analysis::profile::sampled::NameStyle;
use pmc_command::plan;
use pmc_command::recording_screen::ScreenPlan;
use pmc_symbols::symbol::disassemble::Syntax;
use pmc_symbols::symbol::source_text::SourceFolders;
use pmc_sys::error::Result;
use pmc_text::terminal::Stream;
use pmc_text::terminal::theme::Background;
use pmc_view::annotate::{AnnotateLayout, ListingFormat};

/// Default number of functions shown.
const FUNCTIONS: usize = 3;

/// Settings of `pmc annotate`.
#[derive(Debug)]
pub(in crate::command) struct AnnotatePlan {
    pub(super) input: PathBuf,
    /// Whether to open the full-screen interface if the output is a terminal, because no option requires text
    /// output.
    pub(super) browses: bool,
    pub(super) background: Option<Background>,
    pub(super) request: AnalysisRequest,
    pub(super) code: AnnotationRequest,
    pub(super) layout: AnnotateLayout,
}

impl AnnotatePlan {
    /// # Errors
    /// Fails if an option is invalid.
    pub(in crate::command) fn new(typed: &AnnotateArgs) -> Result<Self> {
        let function = typed.function.clone().or_else(|| typed.symbol.clone());
        let of_text = typed.stdio
            || typed.stdio2
            || typed.json
            || typed.source_only
            || typed.print_line
            || typed.full_paths;
        let of_columns = typed.show_nr_samples || typed.show_total_period || typed.asm_raw;
        let of_columns = of_columns || typed.percent_type != "local-period" || typed.stdio_color != "auto";
        let of_length = typed.limit > 0 || typed.percent_limit.is_some() || typed.functions != FUNCTIONS;
        Ok(Self {
            input: plan::input(typed.input.as_ref()),
            browses: typed.tui || !(of_text || of_columns || of_length),
            background: plan::background(typed.screen.theme.as_deref())?,
            request: AnalysisRequest {
                selection: plan::selection(&typed.filter)?,
                callers: false,
                joins: !typed.filter.no_join,
                idle: typed.filter.idle,
                name_style: NameStyle { raw: typed.no_demangle, ..NameStyle::default() },
                ..AnalysisRequest::new(plan::symbol_options(&typed.symbol_files)?)
            },
            code: AnnotationRequest {
                most: if function.is_some() { 0 } else { typed.functions },
                function,
                dsos: typed.dsos.clone(),
                limit: typed.percent_limit.unwrap_or(0.0),
                skip_missing: typed.skip_missing,
                options: ListingOptions {
                    syntax: if typed.disassembler_style == "intel" { Syntax::Intel } else { Syntax::Att },
                    with_source: !typed.no_source,
                    folders: SourceFolders {
                        symfs: typed.symbol_files.symfs.clone(),
                        prefix: typed.prefix.clone(),
                        strip: typed.prefix_strip,
                    },
                    raw_names: typed.no_demangle,
                    kcore: typed.kcore.clone(),
                },
            },
            layout: AnnotateLayout {
                form: match (typed.json, typed.stdio2) {
                    (true, _) => ListingFormat::Json,
                    (_, false) if !Stream::Output.is_terminal() => ListingFormat::Rows,
                    _ => ListingFormat::Text,
                },
                basis: match typed.percent_type.as_str() {
                    "local-hits" | "hits-local" => PercentBasis::LocalHits,
                    "global-period" | "period-global" => PercentBasis::GlobalPeriod,
                    "global-hits" | "hits-global" => PercentBasis::GlobalHits,
                    _ => PercentBasis::LocalPeriod,
                },
                source: !typed.no_source,
                instructions: !typed.source_only,
                show_samples: typed.show_nr_samples,
                show_period: typed.show_total_period,
                group: typed.group,
                file_names: typed.print_line,
                full_paths: typed.full_paths,
                raw_bytes: typed.asm_raw,
                rows: plan::rows(Some(typed.limit), true, 0),
                colour: plan::colour(&typed.stdio_color).unwrap_or_else(|| Stream::Output.has_colour()),
            },
        })
    }

    /// Converts the plan to one for the full-screen interface of `pmc report`, which then starts with the
    /// function's code.
    pub(super) fn screen(self) -> ScreenPlan {
        let request = AnalysisRequest {
            usual_keys: true,
            measure: CostMeasure::BranchesIfRecorded,
            callers: true,
            ..self.request
        };
        let opening = AnnotationRequest { most: 1, ..self.code };
        ScreenPlan {
            opening: Some(opening),
            background: self.background,
            ..ScreenPlan::new(&self.input, request)
        }
    }
}
