//! Reading what a folder brings: only regular files, and none without an end.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Bytes of one file of settings, instructions or definitions. Nobody writes more, and a folder that was
/// unpacked may hold anything.
const CAP_BYTES: u64 = 8 << 20;

pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, CAP_BYTES)
}

pub(crate) fn read_up_to(path: &Path, cap: u64) -> io::Result<Vec<u8>> {
    // A pipe would wait for whoever writes into it: it is looked at before it is opened.
    let data = std::fs::metadata(path)?;
    if data.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    if !data.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(cap + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > cap {
        let why = format!("it is larger than {} MiB", cap >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(bytes)
}

pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not valid UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_and_what_is_no_file_is_refused() {
        assert!(read(Path::new("/dev/zero")).unwrap_err().to_string().contains("regular file"));
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        File::create(&large).unwrap().set_len(3 << 30).unwrap();
        assert!(read(&large).unwrap_err().to_string().contains("larger than 8 MiB"));
        std::fs::write(&large, "text").unwrap();
        assert_eq!(read_to_string(&large).unwrap(), "text");
        std::fs::write(&large, [0xff]).unwrap();
        assert!(read_to_string(&large).unwrap_err().to_string().contains("UTF-8"));
        assert_eq!(read(folder.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(read(Path::new("/nowhere")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
