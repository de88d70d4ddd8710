//! Which event each `--filter` is for: the one in front of it.

use clap::{ArgMatches, Args, Command, Error as ClapError, FromArgMatches};

use pmc_sys::error::{Error, Result};

/// The number of `events` in front of each `filter`, which are options or operands of the same command.
///
/// It has no options of its own. It is the first field of a struct of options, because clap removes the
/// values of each field that it fills from the matches.
#[derive(Debug, Clone, Default)]
pub struct FilterPlaces(Vec<usize>);

impl FilterPlaces {
    /// Counts an event in front of all filters, which was not on the command line.
    pub fn insert_event(&mut self) {
        self.0.iter_mut().for_each(|place| *place += 1);
    }

    /// Returns each of the `filters` with the index of its event.
    ///
    /// # Errors
    /// Fails if a filter is in front of all events.
    pub fn assign(self, filters: Vec<String>) -> Result<Vec<(usize, String)>> {
        assert_eq!(self.0.len(), filters.len(), "the places are the first field");
        let of = |(place, filter): (usize, String)| {
            let event = place.checked_sub(1).ok_or_else(|| {
                Error::usage(format!("--filter '{filter}' must follow the event that it applies to"))
                    .try_options("-e sched:sched_switch --filter 'prev_pid != 0'")
            })?;
            Ok((event, filter))
        };
        self.0.into_iter().zip(filters).map(of).collect()
    }
}

impl Args for FilterPlaces {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for FilterPlaces {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, ClapError> {
        let places = |name| matches.indices_of(name).into_iter().flatten();
        let before = |filter| places("events").filter(|event| *event < filter).count();
        Ok(Self(places("filter").map(before).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), ClapError> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        places: FilterPlaces,
        #[arg(short)]
        events: Vec<String>,
        #[arg(long)]
        filter: Vec<String>,
    }

    #[test]
    fn filters_are_for_the_event_in_front_of_them() {
        let assigned = |line: &str, ahead: usize| {
            let Typed { mut places, filter, .. } = Typed::parse_from(line.split(' '));
            (0..ahead).for_each(|_| places.insert_event());
            places.assign(filter).map(|all| all.into_iter().map(|(event, _)| event).collect::<Vec<_>>())
        };
        let line = "pmc -e a --filter x -e b -e c --filter y --filter z";
        assert_eq!(assigned(line, 0).unwrap(), [0, 2, 2]);
        assert_eq!(assigned(line, 1).unwrap(), [1, 3, 3]);
        assert!(assigned("pmc --filter x -e a", 0).is_err());
        assert_eq!(assigned("pmc --filter x -e a", 1).unwrap(), [0]);
        assert_eq!(assigned("pmc -e a", 0).unwrap(), [0; 0]);
    }
}
