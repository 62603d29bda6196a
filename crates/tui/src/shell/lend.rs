//! Giving the terminal to somebody else for a while: an editor, the shell that started us.

use std::time::Duration;

use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};

use super::Shell;
use crate::app::Input;
use crate::screen::Screen;
use crate::style::Line;

/// Until a stopped process has stopped.
const STANDSTILL: Duration = Duration::from_millis(100);

impl Shell {
    fn lend<T>(&mut self, work: impl FnOnce() -> T) -> std::io::Result<T> {
        // What stands there now is drawn again afterwards.
        if let Some(out) = self.screen.paint(&[], vec![Line::empty()], Some((0, 0))) {
            self.terminal.write(&out)?;
        }
        self.terminal.drain()?;
        crate::terminal::restore();
        let result = work();
        self.terminal.enter_again()?;
        self.begin_anew();
        Ok(result)
    }

    /// Draws below whatever stands there.
    fn begin_anew(&mut self) {
        self.size = self.terminal.size();
        let (columns, rows) = self.size;
        self.screen = Screen::new(self.depth, columns);
        self.screen.set_height(rows);
        self.full = None;
        self.app.update(self.begun.elapsed(), Input::Resize { columns, rows });
        self.dirty = true;
    }

    pub(super) fn suspend(&mut self) -> std::io::Result<()> {
        if !can_stop() {
            return self.terminal.write("\x07");
        }
        self.stopped = true;
        self.lend(|| {
            // Not the signal that we hear ourselves.
            kill_current_process_group(Signal::STOP).ok();
            // It takes a moment until all threads stand still; what comes after this line must come
            // after the process goes on, or the shell's modes would win.
            std::thread::sleep(STANDSTILL);
        })
    }

    /// The process stood still without our doing.
    pub(super) fn resume(&mut self) -> std::io::Result<()> {
        self.terminal.insist()?;
        self.terminal.write("\r\n")?;
        self.begin_anew();
        Ok(())
    }

    pub(super) fn open_editor(&mut self, text: &str) -> std::io::Result<()> {
        let edited = self.lend(|| edit(text))?;
        self.app.update(self.begun.elapsed(), Input::Edited(edited));
        Ok(())
    }
}

/// Whether there is a shell that could let us go on. One that begins a session has none behind it: it
/// would stand still for ever.
fn can_stop() -> bool {
    getsid(None).is_ok_and(|session| session != getpgrp())
}

/// The person's own editor, in our terminal: it needs that terminal and our session, which a child of
/// `proc` is kept from having.
fn edit(text: &str) -> Result<String, String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let command = set("VISUAL").or_else(|| set("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let file = std::env::temp_dir().join(format!("tw-prompt-{}.md", std::process::id()));
    let failed = |problem: std::io::Error| format!("cannot use {}: {problem}", file.display());
    write_private(&file, text).map_err(failed)?;
    let status = std::process::Command::new(program).args(words).arg(&file).status();
    let edited = match status {
        Ok(status) if status.success() => std::fs::read_to_string(&file).map_err(failed),
        Ok(status) => Err(format!("{program} ended with {status}; the text is as it was")),
        Err(problem) => Err(format!("cannot start {program}: {problem}; set $EDITOR")),
    };
    std::fs::remove_file(&file).ok();
    edited.map_err(|problem| problem.to_string())
}

fn write_private(file: &std::path::Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::remove_file(file).ok();
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(file)?.write_all(text.as_bytes())
}
