//! The scratch copy of the tree in which mutants are built.

use super::Mutant;
use crate::error::MutantError;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lines of a compiler's output that are shown.
const LINES_MAX: usize = 20;

/// One tree and one build cache, used by one mutant after the other.
///
/// All mutants are built at the same path: a build cache knows its packages by it. A file is written only when its bytes differ,
/// so that a build does again only what the patch touches.
#[derive(Debug)]
pub(super) struct Scratch {
    source: PathBuf,
    directory: PathBuf,
    files: BTreeSet<PathBuf>,
}

impl Scratch {
    /// Copies the tree that the current directory belongs to.
    pub(super) fn open(directory: &Path) -> Result<Scratch, MutantError> {
        let top = tool(Command::new("git").args(["rev-parse", "--show-toplevel"]))?;
        let source = PathBuf::from(String::from_utf8_lossy(&top.stdout).trim_end());
        fs::create_dir_all(directory).map_err(at(directory))?;
        let directory = directory.canonicalize().map_err(at(directory))?;
        let listed = tool(Command::new("git").current_dir(&source).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let names = listed.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let files = names
            .map(|name| PathBuf::from(&*String::from_utf8_lossy(name)))
            .filter(|file| source.join(file).is_file())
            .collect();
        let scratch = Scratch { source, directory, files };
        scratch.restore()?;
        Ok(scratch)
    }

    fn tree(&self) -> PathBuf {
        self.directory.join("tree")
    }

    /// Makes the scratch tree equal to the source.
    fn restore(&self) -> Result<(), MutantError> {
        let tree = self.tree();
        fs::create_dir_all(&tree).map_err(at(&tree))?;
        self.remove_strangers(&tree)?;
        for file in &self.files {
            let (from, to) = (self.source.join(file), tree.join(file));
            let bytes = fs::read(&from).map_err(at(&from))?;
            if fs::read(&to).is_ok_and(|present| present == bytes) {
                continue;
            }
            let parent = to.parent().expect("a file of the tree has a directory");
            fs::create_dir_all(parent).map_err(at(parent))?;
            fs::write(&to, bytes).map_err(at(&to))?;
        }
        Ok(())
    }

    /// Removes what an earlier patch or an earlier source left.
    fn remove_strangers(&self, directory: &Path) -> Result<(), MutantError> {
        for entry in fs::read_dir(directory).map_err(at(directory))? {
            let path = entry.map_err(at(directory))?.path();
            let name = path.strip_prefix(self.tree()).expect("it was listed below the tree");
            if path.is_dir() {
                self.remove_strangers(&path)?;
            } else if !self.files.contains(name) {
                fs::remove_file(&path).map_err(at(&path))?;
            }
        }
        Ok(())
    }

    /// Fails if the patch does not apply; changes nothing.
    pub(super) fn try_patch(&self, mutant: &Mutant) -> Result<(), MutantError> {
        self.apply(mutant, &["--check"])
    }

    fn apply(&self, mutant: &Mutant, flags: &[&str]) -> Result<(), MutantError> {
        self.apply_file(&mutant.name, &mutant.patch, flags)
    }

    fn apply_file(&self, name: &str, patch: &Path, flags: &[&str]) -> Result<(), MutantError> {
        let patch = patch.canonicalize().map_err(at(patch))?;
        let mut command = Command::new("git");
        // Beyond this directory git must not look: inside of a repository it would skip files silently.
        command.current_dir(self.tree()).env("GIT_CEILING_DIRECTORIES", &self.directory).env_remove("GIT_DIR");
        let result = tool(command.arg("apply").args(flags).arg("--whitespace=nowarn").arg(patch));
        result.map(|_| ()).map_err(|error| match error {
            MutantError::Tool { reason, .. } => MutantError::Stale { name: name.to_owned(), reason },
            other => other,
        })
    }

    /// Builds the patched tree and restores it; gives the program.
    pub(super) fn build_mutant(&self, mutant: &Mutant) -> Result<PathBuf, MutantError> {
        self.restore()?;
        self.apply(mutant, &[])?;
        let built = self.build(&mutant.name);
        self.restore()?;
        built
    }

    /// Builds the tree with the mutant's patch and another one, and restores it; gives the program.
    pub(super) fn build_changed(&self, mutant: &Mutant, change: &Path) -> Result<PathBuf, MutantError> {
        self.restore()?;
        self.apply(mutant, &[])?;
        self.apply_file("change", change, &[])?;
        let built = self.build(&format!("{}-changed", mutant.name));
        self.restore()?;
        built
    }

    /// Builds the tree as it stands; gives the program, copied to a place of its own.
    pub(super) fn build(&self, name: &str) -> Result<PathBuf, MutantError> {
        let running = std::env::current_exe().map_err(at(Path::new("/proc/self/exe")))?;
        let binary = running.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(self.tree()).args(["build", "--quiet", "--profile", "sim", "--bin", &binary]);
        command.arg("--message-format=json-render-diagnostics").arg("--target-dir").arg(self.directory.join("target"));
        // A patch changes a few lines of a package that many others use.
        command.env("CARGO_INCREMENTAL", "1");
        let output = tool(&mut command).map_err(|error| match error {
            MutantError::Tool { reason, .. } => MutantError::Build { name: name.to_owned(), reason },
            other => other,
        })?;
        let built = executable(&output.stdout)
            .ok_or_else(|| MutantError::Build { name: name.to_owned(), reason: format!("no binary {binary:?}") })?;
        let programs = self.directory.join("bin");
        fs::create_dir_all(&programs).map_err(at(&programs))?;
        let program = programs.join(name);
        // Removed first: a program that still runs cannot be written to.
        let _ = fs::remove_file(&program);
        fs::copy(&built, &program).map_err(at(&program))?;
        Ok(program)
    }

    /// Gives each file that what a program does may depend on, with its bytes.
    pub(super) fn read_code(&self, mut give: impl FnMut(&Path, &[u8])) -> Result<(), MutantError> {
        let is_code = |file: &&PathBuf| {
            let end = file.extension().and_then(|end| end.to_str());
            end.is_some_and(|end| ["rs", "toml", "lock"].contains(&end))
        };
        for file in self.files.iter().filter(is_code) {
            give(file, &self.read(&self.source.join(file))?);
        }
        Ok(())
    }

    /// A file's bytes.
    pub(super) fn read(&self, path: &Path) -> Result<Vec<u8>, MutantError> {
        fs::read(path).map_err(at(path))
    }

    /// A result that was kept; none if there is none.
    pub(super) fn stored(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(name)).ok()
    }

    /// Keeps a result beside the trees.
    pub(super) fn store(&self, name: &str, text: &str) -> Result<(), MutantError> {
        let path = self.directory.join(name);
        fs::write(&path, text).map_err(at(&path))
    }
}

/// The last executable that cargo's messages name.
fn executable(messages: &[u8]) -> Option<PathBuf> {
    let lines = messages.split(|byte| *byte == b'\n').rev();
    let message = |line: &[u8]| serde_json::from_slice::<serde_json::Value>(line).ok();
    lines.filter_map(message).find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> MutantError + use<'_> {
    move |source| MutantError::File { path: path.to_owned(), source }
}

/// Runs a tool to its end; its last lines are the error.
fn tool(command: &mut Command) -> Result<Output, MutantError> {
    let name = || command_text(command);
    let failed = |reason: String, name: String| MutantError::Tool { command: name, reason };
    let text = name();
    let output = command.output().map_err(|source| failed(source.to_string(), text.clone()))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().collect();
    let reason = lines[lines.len().saturating_sub(LINES_MAX)..].join("\n");
    Err(failed(reason, text))
}

fn command_text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
