//! Archives of a few small files, each stored as it is: the ZIP of PKWARE's APPNOTE 6.3, §4.3.

/// Makes an archive of these files. Their names are relative paths in ASCII; together they have less than 4 GiB.
pub fn archive<'a>(files: impl IntoIterator<Item = (&'a str, Vec<u8>)>) -> Vec<u8> {
    let (mut archive, mut directory, mut count) = (Vec::new(), Vec::new(), 0_u16);
    for (name, content) in files {
        let at = length(&archive);
        let length = length(&content).to_le_bytes();
        // Version 2.0, no flags, stored, and midnight of the first day that the format knows.
        let mut entry = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        entry.extend(crc32(&content).to_le_bytes());
        entry.extend([length, length].concat());
        let name_length = u16::try_from(name.len()).unwrap_or(u16::MAX);
        entry.extend(name_length.to_le_bytes());
        // No extra field.
        entry.extend([0, 0]);
        archive.extend([b"PK\x03\x04", &*entry, name.as_bytes(), &content].concat());
        // Made by version 2.0. No comment, on the first disk, with no attributes.
        directory.extend([b"PK\x01\x02\x14\0", &*entry, &[0; 10]].concat());
        directory.extend(at.to_le_bytes());
        directory.extend(name.as_bytes());
        count += 1;
    }
    let (at, size) = (length(&archive), length(&directory));
    archive.extend(directory);
    archive.extend(b"PK\x05\x06\0\0\0\0");
    archive.extend([count.to_le_bytes(), count.to_le_bytes()].concat());
    archive.extend([size.to_le_bytes(), at.to_le_bytes()].concat());
    archive.extend([0, 0]);
    archive
}

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// The checksum of §4.4.7.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_that_of_the_check_value() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }
}
