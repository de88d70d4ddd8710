//! Reads a recording from memory, and asks for an event: `outside FILE EVENT`.

use std::error::Error;

use pmc_events::event;
use pmc_perfdata::perfdata::Reader;
use pmc_sys::host::Host;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let bytes = std::fs::read(words.next().ok_or("usage: outside FILE EVENT")?)?;
    let reader = Reader::from_bytes(bytes)?;
    let (mut records, mut count, mut samples, mut last) = (reader.records()?, 0, 0, None);
    while let Some(entry) = records.next_record()? {
        count += 1;
        samples += usize::from(entry.sample.is_some());
        last = entry.time.max(last);
    }
    println!("{count} records, {samples} samples until {last:?}");
    match event::parse(&words.next().unwrap_or_default(), &Host::live()) {
        Ok(groups) => println!("{} events", groups.iter().map(|group| group.events.len()).sum::<usize>()),
        Err(wrong) => println!("{}: {:?}", wrong.message, wrong.remedy),
    }
    Ok(())
}
