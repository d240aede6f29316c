//! `explain`, `schema`, `completions`: answers about the program itself, without a daemon.

use clap::CommandFactory;
use semaprax_protocol::documents::{Explanation, SchemaList};
use semaprax_protocol::{Code, Diagnostic, Refusal, SchemaTag, schema};

use crate::cli::args::{Arguments, CompletionsArguments, ExplainArguments, SchemaArguments};
use crate::cli::exit::{CommandResult, Exit};
use crate::cli::settings::Settings;

pub(super) fn explain(settings: &Settings, arguments: &ExplainArguments) -> CommandResult {
    let Some(code) = Code::from_word(&arguments.code) else {
        let words: Vec<&str> = Code::ALL.iter().map(|code| code.word()).collect();
        return Err(unknown("code", &arguments.code, &words).into());
    };
    settings.output.show(&Explanation {
        schema: SchemaTag::new(),
        code,
        status: code.status(),
        exit_code: code.status().exit_code(),
        meaning: code.meaning().to_owned(),
        hint: code.hint().map(str::to_owned),
    })?;
    Ok(Exit::DONE)
}

pub(super) fn schema(settings: &Settings, arguments: &SchemaArguments) -> CommandResult {
    let Some(name) = &arguments.name else {
        settings.output.show(&SchemaList {
            schema: SchemaTag::new(),
            names: schema::NAMES.iter().map(|&name| name.to_owned()).collect(),
        })?;
        return Ok(Exit::DONE);
    };
    let Some(found) = schema::json_schema_of(name) else {
        return Err(unknown("document", name, schema::NAMES).into());
    };
    let text = serde_json::to_string_pretty(&found).map_err(std::io::Error::other)?;
    settings.output.raw(format!("{text}\n").as_bytes())?;
    Ok(Exit::DONE)
}

pub(super) fn completions(settings: &Settings, arguments: &CompletionsArguments) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "semaprax",
        &mut script,
    );
    settings.output.raw(&script)?;
    Ok(Exit::DONE)
}

fn unknown(kind: &str, name: &str, known: &[&str]) -> Refusal {
    Diagnostic::new(Code::Usage, format!("there is no {kind} `{name}`"))
        .hint(format!("there are: {}", known.join(", ")))
        .into()
}
