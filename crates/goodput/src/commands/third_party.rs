//! Measures with another server on a client's behalf, and reports in nuttcp's format.

use anyhow::bail;
use goodput_engine::serve::ThirdParty;
use goodput_engine::{Client, Credentials, EngineError, Interrupt, RateLimits, Target, conclude};
use goodput_wire::protocols::nuttcp::PROTOCOL;
use goodput_wire::session::ThirdPartyTest;

use super::measured;
use crate::args::ServeArgs;
use crate::exit;
use goodput_compat::formats::{self, Context, Intervals, Style};

/// Runs measurements with third parties, if the options allow any.
pub fn runner(args: &ServeArgs) -> Option<ThirdParty> {
    let allowed = args.clients.third_party.clone();
    (!allowed.is_empty()).then(|| ThirdParty::new(allowed, run))
}

fn run(
    test: &ThirdPartyTest,
    rate_limits: RateLimits,
    interrupt: &Interrupt,
    say: &mut dyn FnMut(String),
) -> Result<(), String> {
    measure(test, rate_limits, interrupt, say).map_err(|error| exit::in_words(&error))
}

fn measure(
    test: &ThirdPartyTest,
    rate_limits: RateLimits,
    interrupt: &Interrupt,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<()> {
    let ThirdPartyTest { host, port, plan, words } = test;
    let text = format!("{}://{host}:{port}", PROTOCOL.id);
    let target = Target {
        text,
        host: host.clone(),
        port: *port,
        protocol: &PROTOCOL,
        file: None,
        mounted: None,
    };
    let started = measured::now();
    let format = formats::nuttcp::format(words.key_values, words.verbose);
    let intervals = if words.intervals { Intervals::All } else { Intervals::None };
    let mut writer = (format.writer)(Context {
        plan: plan.clone(),
        target: target.text.clone(),
        started: started.clone(),
        served: None,
        served_flows: 0,
        style: Style { intervals, ..Style::default() },
    });
    let listener = &mut |event| {
        let lines = writer.event(&event);
        if !lines.is_empty() {
            say(lines);
        }
    };
    let measuring = async {
        let credentials = Credentials::default();
        let mut client = Client::connect(&target, plan, &credentials, interrupt, listener).await?;
        client.keep_to(rate_limits);
        let measured = goodput_engine::measure_whole(&mut client, plan, interrupt, listener).await;
        client.leave().await;
        Ok(measured?)
    };
    let measured = measured::runtime()?.block_on(async {
        tokio::select! {
            // An interrupted measurement still collects its reports; here nobody waits for them.
            measured = measuring => measured,
            () = interrupt.raised() => bail!(EngineError::Interrupted),
        }
    })?;
    say(writer.finish(&conclude(measured, &target.text, &started)?.record));
    Ok(())
}
