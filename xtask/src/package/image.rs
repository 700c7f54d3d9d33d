//! The image for containers: buildah makes one by the recipe, of a stand-in for the program without libraries, which takes
//! minutes to build.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};
use goodput_tools::shell::{capture, has_program};
use serde_json::{Value, json};

use super::tree::packaging;

/// What a container of the image runs, and how (OCI image specification, config.md).
fn wanted() -> Value {
    json!({
        "User": "65532:65532",
        "ExposedPorts": { "7487/tcp": {}, "7487/udp": {} },
        "Entrypoint": ["/goodput"],
        "Cmd": ["serve"],
    })
}

/// What is wrong with the image, a line each.
pub fn complaints() -> Result<Vec<String>> {
    if !has_program("buildah") {
        return Ok(vec!["buildah is missing, which makes the image for containers".into()]);
    }
    let place = tempfile::tempdir().context("can't make a folder for the image")?;
    let content = place.path().join("content");
    fs::create_dir(&content)?;
    fs::write(content.join("goodput"), "a stand-in")?;
    let buildah = |command: &str| {
        let mut buildah = Command::new("buildah");
        buildah.arg("--root").arg(place.path().join("images"));
        buildah.arg("--runroot").arg(place.path().join("running"));
        buildah.args(["--storage-driver", "vfs", command]);
        buildah
    };
    let mut build = buildah("bud");
    build.args(["--isolation", "chroot", "--tag", "goodput", "--file"]);
    capture(build.arg(packaging("Containerfile")).arg(&content))?;
    let mut ask = buildah("inspect");
    let told: Value =
        serde_json::from_str(&capture(ask.args(["--type", "image", "localhost/goodput"]))?)?;
    let (is, wanted) = (&told["OCIv1"]["config"], wanted());
    let fields = wanted.as_object().into_iter().flatten();
    let wrong = fields.filter(|(name, value)| is.get(*name) != Some(*value));
    Ok(wrong.map(|(name, value)| format!("the image's {name} is not {value}: {is}")).collect())
}
