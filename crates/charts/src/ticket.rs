//! Markdown for a ticket, with the pictures as files beside it.

use std::fmt::Write;

use goodput_model::{Finding, Permanent};

use crate::answered::{Answered, answered};
use crate::coded::{Part, parts};
use crate::figure::{Figure, Of, Table};
use crate::limit::Limited;
use crate::page::{OVERVIEW, Shown, about, in_overview, in_words, label, subject};
use crate::pair::{NAMES, Sides, before, only, sides};
use crate::{one_run, words};

/// Most rows of a folded table: trackers refuse long texts (GitHub those of more than 65 536 characters).
const MAX_ROWS: usize = 100;

/// A text and the files that it shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The text, Markdown with tables (GitHub Flavored Markdown).
    pub text: String,
    /// Name and content of each picture.
    pub pictures: Vec<(String, String)>,
}

/// The ticket of one or several results. Names of pictures begin with `stem`. The figures of two should be those of
/// [`crate::figures_of_both`]: they stand together.
pub fn ticket(results: &[Shown], stem: &str) -> Ticket {
    let mut ticket = Ticket { text: String::new(), pictures: Vec::new() };
    if results.len() > 1 {
        ticket.overview(results);
    }
    match results {
        [one] => ticket.result(one, stem),
        [first, second] => {
            ticket.head(first);
            ticket.head(second);
            ticket.both([first, second], stem);
        }
        several => {
            for (number, shown) in several.iter().enumerate() {
                ticket.result(shown, &format!("{stem}-{}", number + 1));
            }
        }
    }
    ticket
}

impl Ticket {
    fn overview(&mut self, results: &[Shown]) {
        self.line(&format!("# goodput: {} results\n", results.len()));
        let mut table = Table::new(OVERVIEW);
        results.iter().for_each(|shown| table.row(in_overview(shown.record)));
        self.table(&table);
    }

    fn result(&mut self, shown: &Shown, stem: &str) {
        self.head(shown);
        let (of_all, of_one): (Vec<_>, Vec<_>) =
            shown.figures.iter().partition(|one| one.of == Of::All);
        of_all.into_iter().for_each(|figure| self.figure(figure, stem));
        if let Some(run) = one_run::which(shown.record).filter(|_| !of_one.is_empty()) {
            self.line(&format!("The charts below are of one run. {}.\n", plain(&run)));
        }
        of_one.into_iter().for_each(|figure| self.figure(figure, stem));
    }

    /// What a result is about, and what was found.
    fn head(&mut self, Shown { record, text, .. }: &Shown) {
        self.line(&format!("# goodput: {}\n", plain(&subject(record))));
        self.line(&format!("{}\n", plain(&about(record).join(" · "))));
        if let Some(answered) = answered(record) {
            self.answer(&answered);
        }
        if let Some(shaping) = &record.shaping {
            self.line(&format!("**{}**\n", in_words(shaping)));
            shaping.reasons.iter().for_each(|reason| self.line(&format!("- {}", prose(reason))));
            self.line("");
        }
        let run = one_run::which(record);
        let named = run.as_ref().map_or(String::new(), |run| format!("{}: ", plain(run)));
        self.line(&format!("{named}**{}**.\n", record.result.goodput_bits_per_s));
        for verdict in std::iter::once(&record.verdict).chain(&record.verdict_reverse) {
            let Limited { before, limit, after } = Limited::of(record, verdict);
            self.line(&format!("{}**{}**{}\n", plain(&before), plain(&limit), prose(&after)));
        }
        if let Some(why) = &record.incomplete {
            self.line(&format!("> Incomplete: {}\n", prose(why)));
        }
        for doubt in &record.doubts {
            self.line(&format!("> Doubt: {}\n", prose(doubt)));
        }
        record.findings.iter().for_each(|finding| self.finding(finding));
        self.printed(text);
    }

    /// The figures of two results, those of one kind below each other.
    fn both(&mut self, [first, second]: [&Shown; 2], stem: &str) {
        self.line("# Both results\n");
        for sentence in before([first.record, second.record]) {
            self.line(&format!("{}\n", prose(&sentence)));
        }
        let figures = [first, second].map(|shown| shown.figures.clone());
        let Sides { pairs, alone } = sides([first.record, second.record], figures);
        for figure in pairs.into_iter().flat_map(|pair| NAMES.into_iter().zip(pair)) {
            self.side(figure, stem);
        }
        for (name, figures) in NAMES.into_iter().zip(alone) {
            if !figures.is_empty() {
                self.line(&format!("# {}\n", only(name)));
            }
            figures.into_iter().for_each(|figure| self.side((name, figure), stem));
        }
    }

    /// A figure of one of two results.
    fn side(&mut self, (name, figure): (&str, Figure), stem: &str) {
        let title = format!("{} ({name})", figure.title);
        let number = if name == NAMES[0] { 1 } else { 2 };
        self.figure(&Figure { title, ..figure }, &format!("{stem}-{number}"));
    }

    /// What several runs found, and how to keep it.
    fn answer(&mut self, answered: &Answered) {
        self.line(&format!("**{}**\n", plain(&answered.lead)));
        answered.lines.iter().for_each(|line| self.line(&format!("{}\n", prose(line))));
        if let Some(tried) = &answered.tried {
            self.table(tried);
        }
        if !answered.commands.is_empty() {
            self.line("To keep it:\n");
            answered
                .commands
                .iter()
                .for_each(|command| self.line(&format!("    {}", words::plain(command))));
            self.line("");
        }
        answered.permanent.iter().for_each(|permanent| self.for_good("", permanent));
    }

    /// A file that keeps a change over a reboot, after `indent`.
    fn for_good(&mut self, indent: &str, permanent: &Permanent) {
        self.line(&format!("{indent}- **for good**, in {}:\n", prose(&permanent.file)));
        for line in permanent.lines.lines() {
            self.line(&format!("{indent}      {}", words::plain(line)));
        }
        self.line("");
    }

    fn finding(&mut self, finding: &Finding) {
        let sureness = finding.sureness();
        self.line(&format!("- **{}**: {sureness}", plain(&finding.summary)));
        for witness in &finding.evidence {
            self.line(&format!("  - {}", prose(&witness.text)));
        }
        for change in &finding.changes {
            let setting = plain(&format!("{}={}", change.setting, change.to));
            self.line(&format!("  - **to try** {setting}: {}", prose(&change.why)));
        }
        for advice in &finding.advice {
            self.line(&format!("  - **{}** {}", label(advice), prose(advice)));
        }
        finding.permanent.iter().for_each(|permanent| self.for_good("  ", permanent));
        self.line("");
    }

    /// What the command printed, as it is: indented, so that no character of it means anything to Markdown.
    fn printed(&mut self, text: &str) {
        self.line("<details><summary>The report, as it was printed</summary>\n");
        text.lines().for_each(|line| self.line(&format!("    {}", words::plain(line))));
        self.line("\n</details>\n");
    }

    fn figure(&mut self, figure: &Figure, stem: &str) {
        self.line(&format!("## {}\n", plain(&figure.title)));
        match &figure.svg {
            Some(svg) => {
                let name = format!("{stem}-{}.svg", figure.id);
                self.line(&format!("![{}]({})\n", plain(&figure.title), reference(&name)));
                // Everyone reads it, and once: a picture that can't be shown has its title.
                self.line(&format!("{}\n", plain(&figure.alt)));
                self.pictures.push((name, svg.wide.clone()));
                if !figure.table.rows.is_empty() {
                    self.folded(&figure.table);
                }
            }
            None => {
                self.line(&format!("{}\n", plain(&figure.alt)));
                if !figure.table.rows.is_empty() {
                    self.table(&figure.table);
                }
            }
        }
    }

    /// A table that a reader opens. GitHub and GitLab read Markdown in it after an empty line.
    fn folded(&mut self, table: &Table) {
        self.line("<details><summary>Numbers</summary>\n");
        let step = table.rows.len().div_ceil(MAX_ROWS).max(1);
        if step > 1 {
            let all = table.rows.len();
            self.line(&format!(
                "1 of every {step} rows is shown; `-o FILE.html` writes all {all}.\n"
            ));
        }
        let (columns, rows) = (&table.columns, table.rows.iter().step_by(step));
        self.table(&Table { columns: columns.clone(), rows: rows.cloned().collect() });
        self.line("</details>\n");
    }

    fn table(&mut self, table: &Table) {
        let line = |cells: &[String]| {
            cells.iter().fold(String::from("|"), |mut line, cell| {
                let _ = write!(line, " {} |", plain(cell));
                line
            })
        };
        self.line(&line(&table.columns));
        self.line(&format!("|{}", "---|".repeat(table.columns.len())));
        table.rows.iter().for_each(|row| self.line(&line(row)));
        self.line("");
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// A file beside the ticket as Markdown links to it: a relative reference whose name is percent-encoded (RFC 3986, sections 2.1
/// and 4.2), so that no character of it ends the link, begins a query or a fragment, or makes a scheme.
fn reference(file: &str) -> String {
    let mut reference = String::with_capacity(file.len());
    for byte in file.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                reference.push(byte.into());
            }
            _ => {
                let _ = write!(reference, "%{byte:02X}");
            }
        }
    }
    reference
}

/// A sentence, with what stands between backticks as code: nothing in there is Markdown or HTML (CommonMark 0.31, section
/// 6.1).
fn prose(text: &str) -> String {
    let part = |part| match part {
        Part::Text(text) => plain(text),
        Part::Code("") => plain("``"),
        Part::Code(code) => format!("`{}`", words::plain(code)),
    };
    parts(text).into_iter().map(part).collect()
}

/// Text without what Markdown or HTML would read as more than text: a peer may have chosen it.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let text = words::plain(text);
    for (at, c) in text.char_indices() {
        match c {
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '!' | '~' | '$' => {
                plain.extend(['\\', c])
            }
            // Neither a mention of somebody nor an address becomes a link, and no name becomes an emoji.
            '@' => plain.push_str("&#64;"),
            ':' if !ends_word(&text[at + 1..]) => plain.push_str("&#58;"),
            c => plain.push(c),
        }
    }
    plain
}

/// Whether what follows a colon makes it one of a sentence or of a time, and of nothing else.
fn ends_word(rest: &str) -> bool {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    rest.is_empty() || rest.starts_with(char::is_whitespace) || digits == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_wrote_stays_text() {
        assert_eq!(prose("`*a*` <b> `` `"), "`*a*` &lt;b&gt; \\`\\` \\`");
        assert_eq!(plain("test of nas: at 12:30:05Z"), "test of nas: at 12:30:05Z");
        assert_eq!(plain("http://a :100: :x:"), "http&#58;//a &#58;100: &#58;x:");
        assert_eq!(plain("<script>|a|\n[x](y)"), "&lt;script&gt;\\|a\\| \\[x\\](y)");
    }

    #[test]
    fn a_reference_has_nothing_that_markdown_or_a_browser_would_read_as_more_than_a_name() {
        assert_eq!(reference("page-rate.svg"), "page-rate.svg");
        assert_eq!(reference("run #3 <a>:100%?\n.svg"), "run%20%233%20%3Ca%3E%3A100%25%3F%0A.svg");
        assert_eq!(reference("ä/b"), "%C3%A4%2Fb");
    }

    #[test]
    fn of_a_long_table_some_rows_are_shown_and_it_is_said() {
        let mut ticket = Ticket { text: String::new(), pictures: Vec::new() };
        let mut table = Table::new(["at"]);
        (0..250).for_each(|number: u32| table.row([number.to_string()]));
        ticket.folded(&table);
        assert!(
            ticket.text.contains("1 of every 3 rows is shown; `-o FILE.html` writes all 250."),
            "{}",
            ticket.text
        );
        assert_eq!(ticket.text.lines().filter(|line| line.starts_with("| ")).count(), 1 + 84);
        table.rows.truncate(100);
        ticket.text.clear();
        ticket.folded(&table);
        assert!(
            !ticket.text.contains("is shown") && ticket.text.contains("| 99 |"),
            "{}",
            ticket.text
        );
    }
}
