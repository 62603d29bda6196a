//! Finding a program as a shell would, without trusting what lies in the wrong place.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The first executable file called `name` in the folders of `path` (as `$PATH` is written). Folders
/// that are not absolute mean another place each time and are passed over, as are those that `skip`
/// names: a folder that was merely looked at must not choose what is run.
pub fn find_program(name: &str, path: &OsStr, skip: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    if name.is_empty() || name.contains('/') {
        return None;
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute() && !skip(folder))
        .map(|folder| folder.join(name))
        .find(|file| is_executable(file))
}

pub fn is_executable(file: &Path) -> bool {
    let executable = |data: std::fs::Metadata| data.permissions().mode() & 0o111 != 0;
    std::fs::metadata(file).is_ok_and(|data| data.is_file() && executable(data))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_executables_in_absolute_folders_that_are_not_skipped_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let file = folder.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        make("plain/tool", 0o644);
        let project = make("project/tool", 0o755);
        let system = make("system/tool", 0o755);
        let path = std::env::join_paths(
            ["plain", "project", "system"].map(|name| folder.path().join(name)),
        )
        .unwrap();
        assert_eq!(find_program("tool", &path, &|_| false), Some(project));
        let skip = |folder: &Path| folder.ends_with("project");
        assert_eq!(find_program("tool", &path, &skip), Some(system));
        for name in ["", "other", "../system/tool", "/bin/sh"] {
            assert_eq!(find_program(name, &path, &skip), None, "{name}");
        }
        assert_eq!(find_program("sh", OsStr::new("bin:.:"), &|_| false), None);
    }
}
