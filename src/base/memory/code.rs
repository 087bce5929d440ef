//! Unmaps the code and the constants that only the start of the program used.
//!
//! The kernel maps 64 KiB of a file around each page that is used, so that a start makes two thirds of the program's code
//! resident, of which an idle process uses half. The pages stay in the kernel's cache of the file. A page that is used again is mapped
//! again without being read: a page fault, about a microsecond for 16 pages.

use std::{fs, io, ops::Range};

/// The lines that the kernel writes for a mapping whose pages are all equal to those of its file, in memory and on a swap device.
const UNCHANGED: [[&str; 3]; 2] = [["Anonymous:", "0", "kB"], ["Swap:", "0", "kB"]];

/// Unmaps the pages of code and constants of the program and its libraries.
///
/// # Errors
/// The kernel does not tell about the mappings, or does not unmap one, such as one that is locked in memory.
pub(super) fn unmap() -> io::Result<()> {
    for Range { start, end } in unchanged(&fs::read_to_string("/proc/self/smaps")?) {
        let start: *mut libc::c_void = std::ptr::with_exposed_provenance_mut(start);
        // SAFETY: the range is a private mapping of a file, not writable, no page of which differs from the file: the kernel maps the
        // same bytes again. It is still this mapping, since the process never unloads code.
        if unsafe { libc::madvise(start, end - start.addr(), libc::MADV_DONTNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// The mappings of the program and its libraries that cannot be written and that nobody has written to, of all that `smaps`
/// describes (proc_pid_smaps(5)). The loader writes addresses among the constants, and a debugger or a tracer its breakpoints into code;
/// they would be lost. Another file may be mapped for a moment only, by the loader for example.
fn unchanged(smaps: &str) -> Vec<Range<usize>> {
    let mut mappings: Vec<Mapping<'_>> = Vec::new();
    for line in smaps.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(addresses) = words.first().and_then(|word| range(word)) {
            mappings.push(Mapping {
                addresses,
                mode: words.get(1).copied().unwrap_or_default(),
                file: words.get(5..).unwrap_or_default().join(" "),
                unchanged: 0,
                is_resident: false,
            });
        } else if let ["Rss:", bytes, _] = words[..]
            && let Some(mapping) = mappings.last_mut()
        {
            mapping.is_resident = bytes != "0";
        } else if UNCHANGED.iter().any(|unchanged| words == unchanged)
            && let Some(mapping) = mappings.last_mut()
        {
            mapping.unchanged += 1;
        }
    }
    let is_code = |it: &Mapping<'_>| it.mode == "r-xp" && it.file.starts_with('/');
    let has_code = |file: &str| mappings.iter().any(|it| is_code(it) && it.file == file);
    let found = mappings.iter().filter(|it| {
        let is_read_only = is_code(it) || (it.mode == "r--p" && has_code(&it.file));
        is_read_only && it.is_resident && it.unchanged == UNCHANGED.len()
    });
    found.map(|it| it.addresses.clone()).collect()
}

/// A mapping of this process.
struct Mapping<'s> {
    addresses: Range<usize>,
    /// May it be read, written, executed; is it private or shared.
    mode: &'s str,
    file: String,
    /// The number of [`UNCHANGED`] lines.
    unchanged: usize,
    /// A page of it is in memory. An emulator of another processor describes all pages as absent and unchanged, which proves nothing.
    is_resident: bool,
}

/// Reads `55d0a000-55d0b000`.
fn range(text: &str) -> Option<Range<usize>> {
    let (start, end) = text.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(head: &str, anonymous: u32, swap: u32) -> String {
        format!(
            "{head}\nSize:                  8 kB\nRss:                   8 kB\nAnonymous:             {anonymous} kB\n\
             AnonHugePages:         0 kB\nSwap:                  {swap} kB\nSwapPss:               0 kB\nVmFlags: rd ex mr mw me sd\n"
        )
    }

    fn found(smaps: &str) -> Vec<(usize, usize)> {
        let found = unchanged(smaps).into_iter();
        found.map(|code| (code.start, code.end)).collect()
    }

    #[test]
    fn only_what_nobody_wrote_to_is_unmapped() {
        let code = |name: &str| format!("1000-3000 r-xp 00001000 fe:00 42   {name}");
        for kept in [
            mapping(&code("/usr/bin/breakpoint"), 4, 0),
            mapping(&code("/usr/bin/breakpoint on the swap device"), 0, 4),
            mapping(&code("[vdso]"), 0, 0),
            mapping("1000-3000 r-xp 00000000 00:00 0 ", 0, 0),
            mapping("1000-3000 r--p 00001000 fe:00 42 /bin/it", 4, 0),
            mapping("1000-3000 r--p 00000000 fe:00 42 /etc/ld.so.cache", 0, 0),
            mapping("1000-3000 rw-p 00001000 fe:00 42 /variables", 0, 0),
            mapping("1000-3000 rwxp 00001000 fe:00 42 /changes", 0, 0),
            mapping("1000-3000 r-xs 00001000 fe:00 42 /shared", 0, 0),
            mapping("1000-3000 rw-s 00001000 fe:00 42 /nonces.1.log", 0, 0),
            format!("{}\nSize: 8 kB\n", code("/of/a/kernel/that/tells/less")),
            mapping(&code("/of/an/emulator"), 0, 0)
                .replace("Rss:                   8", "Rss:                   0"),
        ] {
            let text = format!(
                "{kept}{}",
                mapping("4000-5000 r-xp 0 fe:00 42 /bin/it", 0, 0)
            );
            assert_eq!(found(&text), [(0x4000, 0x5000)], "{kept}");
        }
        let constants = mapping("1000-3000 r--p 00000000 fe:00 42 /bin/it", 0, 0);
        let program = constants + &mapping("4000-5000 r-xp 0 fe:00 42 /bin/it", 0, 0);
        assert_eq!(found(&program), [(0x1000, 0x3000), (0x4000, 0x5000)]);
        let deleted = mapping(&code("/usr/bin/replaced by an update (deleted)"), 0, 0);
        assert_eq!(found(&deleted), [(0x1000, 0x3000)]);
    }

    #[test]
    fn this_program_is_found_and_runs_on() {
        let here = this_program_is_found_and_runs_on as fn() as usize;
        let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
        assert!(
            unchanged(&smaps).iter().any(|code| code.contains(&here)),
            "{smaps}"
        );
        unmap().unwrap();
    }
}
