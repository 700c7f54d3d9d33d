//! A record as JSON. Only this file reads and writes records. The code for their many fields is thus compiled once,
//! not again in each crate that keeps, prints or reads records.

use std::io::{self, Write};

use serde::ser::Error as _;
use serde_json::{Error, Value};

use crate::finite;
use crate::record::Record;

impl Record {
    /// Reads the JSON of [`Self::to_json`] or [`Self::write_json`].
    ///
    /// Errors: not JSON, or not a record.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        serde_json::from_str(text)
    }

    /// The same as [`Self::to_json`], for those who keep it: it surely reads back.
    ///
    /// Errors: a number of the record is infinite or none at all, which JSON can't hold.
    pub fn to_readable_json(&self) -> Result<String, Error> {
        finite::check(self)?;
        self.to_json()
    }

    /// The record as JSON in one line, without a line end.
    pub fn to_json(&self) -> Result<String, Error> {
        let mut line = Vec::new();
        self.write_json_line(&mut line).map_err(Error::io)?;
        String::from_utf8(line).map_err(|_| Error::custom("the JSON is not text"))
    }

    /// The record as a JSON value, to put it into other JSON.
    pub fn to_json_value(&self) -> Result<Value, Error> {
        serde_json::to_value(self)
    }

    /// Writes the record as indented JSON, for people. The text is never in memory as a whole.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer_pretty(out, self)?)
    }

    /// Writes the same line as [`Self::to_json`]. The text is never in memory as a whole.
    pub fn write_json_line(&self, out: &mut dyn Write) -> io::Result<()> {
        Ok(serde_json::to_writer(out, self)?)
    }
}
