#!/bin/bash
# setup.sh - build the arm64 guest with an emulated PMUv3 (QEMU TCG) from
# Debian packages only. Idempotent: each step is skipped if its product exists.
# `setup.sh --force` rebuilds the guest but keeps downloaded packages.
#
# Products, under $PMURIG (default ~/.cache/pmurig):
#   vmlinuz        arm64 kernel (Debian generic arm64 flavour)
#   initrd.cpio    busybox + modules + /init (boots, mounts, runs, powers off)
#   arm_spe_timer.ko  a PMU with an AUX area (guest/trace, run.sh -p)
#   newest/        the same three for Debian's newest kernel (run.sh -n)
#   rootfs.ext4    Debian arm64 userland with perf, perl, strace, binutils
#   sysroot/       arm64 Rust std (libstd-rust-web-dev:arm64) for cross.sh
set -euo pipefail
RIG=${PMURIG:-${XDG_CACHE_HOME:-$HOME/.cache}/pmurig}
HERE=$(cd "$(dirname "$0")" && pwd)
FORCE=0; [ "${1:-}" = --force ] && FORCE=1
mkdir -p "$RIG"; cd "$RIG"
say() { printf '[setup %3ds] %s\n' "$SECONDS" "$*"; }

# ---- 1. host packages --------------------------------------------------
HOSTPKGS="qemu-system-arm ipxe-qemu gcc-aarch64-linux-gnu libc6-dev-arm64-cross rustc-web cpio kmod make e2fsprogs xz-utils"
installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }
missing=
for p in $HOSTPKGS; do installed "$p" || missing="$missing $p"; done
if ! dpkg --print-foreign-architectures | grep -qx arm64; then
    dpkg --add-architecture arm64; missing="$missing "
    apt-get update -qq
elif ! apt-cache show busybox-static:arm64 >/dev/null 2>&1 || [ -n "$missing" ]; then
    apt-get update -qq
fi
if [ -n "${missing// /}" ]; then
    say "installing:$missing"
    # bookworm and bookworm-security have rustc-web. Without recommended packages there is no GUI and no
    # arm64 package. apt-get fails if dpkg cannot configure an unrelated package, so check ours with dpkg.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >apt.log 2>&1 || true
    for p in $HOSTPKGS; do installed "$p" || { tail -20 apt.log; echo "setup.sh: $p is not installed" >&2; exit 1; }; done
fi
say "host packages ok: $(qemu-system-aarch64 --version | head -1)"

# A copy of QEMU with exact event-counter overflow under -icount (see
# patch_qemu.py). Without it, sampling by INSTRUCTIONS takes samples only at the
# 4 ms tick; everything else works. run.sh uses the copy if it exists.
QBIN=$(readlink -f "$(command -v qemu-system-aarch64)")
if [ ! -e qemu-pmufix ] || [ "$QBIN" -nt qemu-pmufix ]; then
    rm -f qemu-pmufix
    if command -v python3 >/dev/null; then
        python3 "$HERE/patch_qemu.py" "$QBIN" qemu-pmufix || say "WARNING: stock QEMU will be used"
    else say "WARNING: no python3: stock QEMU will be used"; fi
fi

# ---- 2. arm64 packages (downloaded, never installed on the host) --------
FLAVOUR=${PMURIG_FLAVOUR:-arm64}           # arm64 (has 9p) - cloud-arm64 lacks 9p
KPKG=$(apt-cache depends "linux-image-$FLAVOUR:arm64" | sed -n 's/^ *Depends: \(linux-image-[^:]*\).*/\1/p' | head -1)
KVER=${KPKG#linux-image-}
mkdir -p debs
if ! ls debs/"$KPKG"_*_arm64.deb >/dev/null 2>&1; then
    say "downloading $KPKG"
    (cd debs && apt-get download -qq -o APT::Sandbox::User=root "$KPKG:arm64")
fi
# Headers and build programs (for the host) to build modules for this kernel.
if [ "$(cat headers/.kver 2>/dev/null)" != "$KVER" ] && ! ls debs/linux-headers-"$KVER"_*_arm64.deb >/dev/null 2>&1; then
    say "downloading linux-headers-$KVER"
    KBUILD=$(apt-cache depends "linux-headers-$KVER:arm64" | sed -n 's/^ *Depends: \(linux-kbuild-[^:]*\).*/\1/p')
    rm -rf debs/linux-{headers,kbuild}-* debs/part; mkdir debs/part
    (cd debs/part && apt-get download -qq -o APT::Sandbox::User=root "linux-headers-$KVER:arm64" \
        "linux-headers-${KVER%-"$FLAVOUR"}-common" "$KBUILD")
    mv debs/part/* debs/ # All packages or none.
fi
RUSTV=$(dpkg-query -W -f '${Version}' rustc-web)
if ! ls debs/libstd-rust-web-dev_*_arm64.deb >/dev/null 2>&1; then
    say "downloading libstd-rust-web-dev:arm64=$RUSTV"
    (cd debs && apt-get download -qq -o APT::Sandbox::User=root "libstd-rust-web-dev:arm64=$RUSTV")
fi
# The guest's userland: apt resolves all dependencies against an EMPTY dpkg
# status, as if on a bare arm64 machine, and only downloads the packages.
GUESTPKGS="busybox-static linux-perf bash coreutils util-linux bsdutils procps grep sed mawk findutils libc-bin binutils perl-base strace kmod"
mkdir -p rootdebs/partial aptstate
if [ ! -e rootdebs/.done ] || [ "$(cat rootdebs/.done)" != "$GUESTPKGS" ]; then
    say "downloading the guest's userland"
    : >aptstate/status
    apt-get -y -qq --no-install-recommends --download-only \
        -o Dir::State::status="$RIG/aptstate/status" -o APT::Architecture=arm64 \
        -o APT::Architectures::=arm64 -o Dir::Cache::archives="$RIG/rootdebs" \
        -o APT::Sandbox::User=root install $GUESTPKGS >apt-guest.log 2>&1 \
        || { tail -20 apt-guest.log; exit 1; }
    echo "$GUESTPKGS" >rootdebs/.done
fi

# ---- 3. kernel -----------------------------------------------------------
if [ $FORCE = 1 ] || [ "$(cat kernel/.kver 2>/dev/null)" != "$KVER" ]; then
    say "unpacking kernel $KVER"
    rm -rf kernel; mkdir kernel
    dpkg -x debs/"$KPKG"_*_arm64.deb kernel
    cp kernel/boot/vmlinuz-"$KVER" vmlinuz
    depmod -b kernel "$KVER"
    echo "$KVER" >kernel/.kver
    rm -f initrd.cpio
fi

# ---- 4. root file system ---------------------------------------------------
if [ $FORCE = 1 ] || [ ! -e rootfs.ext4 ] || [ rootdebs/.done -nt rootfs.ext4 ]; then
    say "building rootfs.ext4"
    rm -rf root; mkdir -p root/usr/{bin,sbin,lib} root/{proc,sys,dev,run,tmp,host,rig,root,etc}
    ln -s usr/bin root/bin; ln -s usr/sbin root/sbin; ln -s usr/lib root/lib
    for d in rootdebs/*.deb; do
        dpkg --fsys-tarfile "$d" | tar -C root -x --keep-directory-symlink
    done
    # Maintainer scripts did not run, so create the few files that they would have made.
    echo 'root:x:0:0:root:/root:/bin/bash' >root/etc/passwd
    echo 'nobody:x:65534:65534:nobody:/:/usr/sbin/nologin' >>root/etc/passwd
    printf 'root:x:0:\nnogroup:x:65534:\n' >root/etc/group
    echo pmurig >root/etc/hostname; echo '127.0.0.1 localhost pmurig' >root/etc/hosts
    [ -e root/usr/bin/awk ] || ln -s mawk root/usr/bin/awk
    ln -sf bash root/usr/bin/sh
    for a in vi less killall nc wget sleep; do
        [ -e root/usr/bin/$a ] || ln -s busybox root/usr/bin/$a
    done
    rm -rf root/usr/share/{doc,man,locale,info} root/var/lib/apt root/usr/share/zoneinfo
    rm -f rootfs.ext4
    truncate -s 512M rootfs.ext4
    mke2fs -q -t ext4 -O ^has_journal -E root_owner=0:0 -d root rootfs.ext4
    rm -f initrd.cpio
fi

# ---- 5. initramfs ------------------------------------------------------------
# initrd MODULES VERSION FILE: packs busybox and the modules of that kernel, dependencies first.
initrd() {
    rm -rf ird; mkdir -p ird/{bin,mod,proc,sys,dev,new}
    cp root/usr/bin/busybox ird/bin/busybox
    ln -s busybox ird/bin/sh
    cp "$HERE/init" ird/init; chmod 755 ird/init
    : >ird/mod/order
    for m in virtio_pci virtio_blk virtio_console ext4 9p 9pnet_virtio; do
        modprobe -d "$1" -S "$2" --show-depends "$m" | sed -n 's/^insmod //p' \
        | while read -r f _; do
            b=$(basename "$f" .xz)
            [ -e "ird/mod/$b" ] && continue
            case $f in *.xz) xz -dc "$f" >"ird/mod/$b";; *) cp "$f" "ird/mod/$b";; esac
            echo "$b" >>ird/mod/order
        done
    done
    (cd ird && find . | cpio -o -H newc --quiet) >"$3"
}
if [ $FORCE = 1 ] || [ ! -e initrd.cpio ] || [ "$HERE/init" -nt initrd.cpio ]; then
    say "building initrd.cpio"
    initrd kernel "$KVER" initrd.cpio
fi

# headers DIR DEB...: unpacks a kernel's headers and build programs to DIR and adjusts their paths.
headers() {
    rm -rf "$1"; mkdir -p "$1"
    for d in "${@:2}"; do dpkg -x "$d" "$1"; done
    sed -i "s,/usr/src/,$RIG/$1&," "$1"/usr/src/linux-headers-*-arm64/Makefile
}
if [ $FORCE = 1 ] || [ "$(cat headers/.kver 2>/dev/null)" != "$KVER" ]; then
    say "unpacking linux-headers-$KVER"
    headers headers debs/linux-headers-*.deb debs/linux-kbuild-*.deb
    rm -f arm_spe_timer.ko
    echo "$KVER" >headers/.kver
fi

# Debian's newest kernel (from the unstable suite), for features that the other lacks: inherited groups that
# samples read (6.13), and counts of exiting threads (missing from 5.13 to 6.18). apt uses its own package lists.
if [ $FORCE = 1 ] || [ ! -e newest/initrd.cpio ] || [ ! -e newest/headers ] || [ "$HERE/init" -nt newest/initrd.cpio ]; then
    say "fetching the newest kernel"
    rm -rf newest; mkdir -p newest/{lists/partial,cache/archives/partial,debs,unpacked}
    : >newest/status
    uri=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | head -1 || true)
    host=$(dpkg --print-architecture)
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${uri% } sid main" >newest/sources.list
    o=(-o "Dir::Etc::SourceList=$RIG/newest/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$RIG/newest/lists" -o "Dir::Cache=$RIG/newest/cache" -o "Dir::State::status=$RIG/newest/status"
        -o APT::Architecture=arm64 -o "APT::Architectures=arm64,$host" -o Acquire::Languages=none
        -o APT::Sandbox::User=root)
    apt-get "${o[@]}" update -qq
    NEW=$(apt-cache "${o[@]}" depends linux-image-arm64 | sed -n 's/^ *Depends: linux-image-//p' | head -1)
    # Newer packages separate the kernel and its modules.
    (cd newest/debs && apt-get "${o[@]}" download -qq $(apt-cache "${o[@]}" pkgnames \
        | grep -xE "linux-(image|base|binary|modules)-${NEW//+/\\+}"))
    for d in newest/debs/*.deb; do dpkg -x "$d" newest/unpacked; done
    # Headers and build programs for its modules. The programs run on the host but need a newer C library.
    rm newest/debs/*.deb
    (cd newest/debs && apt-get "${o[@]}" download -qq "linux-headers-$NEW" "linux-headers-${NEW%-arm64}-common" \
        "linux-kbuild-${NEW%-arm64}:$host" "libc6:$host")
    headers newest/headers newest/debs/*.deb
    for p in newest/headers/usr/lib/linux-kbuild-*/scripts/mod/modpost; do
        ld=$(echo "$RIG"/newest/headers/usr/lib/*-linux-gnu/ld-linux-*.so.*)
        printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$ld" "${ld%/*}" "$RIG/$p.real-lsb-64" >"$p"
    done
    mkdir -p newest/tree/lib
    mv "$(find newest/unpacked -type d -path "*/modules/$NEW" | head -1 | xargs dirname)" newest/tree/lib/modules
    depmod -b newest/tree "$NEW"
    cp "$(find newest -name 'vmlinuz*' | head -1)" newest/vmlinuz
    initrd newest/tree "$NEW" newest/initrd.part
    rm -rf newest/{lists,cache,debs,unpacked,tree,status,sources.list}
    mv newest/initrd.part newest/initrd.cpio
fi

# ---- 6. a PMU with an AUX area -------------------------------------------------
# module DIR: builds DIR/arm_spe_timer.ko with the headers in DIR. Leaves out options that a compiler older than
# the kernel's may not support, and BTF, which needs pahole.
module() {
    if [ $FORCE = 0 ] && [ -e "$1/arm_spe_timer.ko" ] && [ -z "$(find "$HERE/guest/trace" -newer "$1/arm_spe_timer.ko")" ]; then return 0; fi
    say "building $1/arm_spe_timer.ko"
    rm -rf "$1"/{module,arm_spe_timer.ko}; cp -r "$HERE/guest/trace" "$1/module"
    make -C "$(echo "$1"/headers/usr/src/linux-headers-*-arm64)" ARCH=arm64 CROSS_COMPILE=aarch64-linux-gnu- CC=aarch64-linux-gnu-gcc \
        CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT= CONFIG_DEBUG_INFO_BTF_MODULES= KCFLAGS=-Wno-attributes M="$RIG/$1/module" modules >"$1/module/log" 2>&1 \
        || { tail -40 "$1/module/log"; return 1; }
    aarch64-linux-gnu-strip -g "$1/module/arm_spe_timer.ko"
    mv "$1/module/arm_spe_timer.ko" "$1/"
}
module .
# A future kernel may need a newer compiler or change its interface. Tests without traces still run then.
module newest || say "WARNING: no arm_spe_timer.ko for the newest kernel"

# ---- 7. Rust std for aarch64 ---------------------------------------------------
if [ $FORCE = 1 ] || [ "$(cat sysroot/.ver 2>/dev/null)" != "$RUSTV" ]; then
    say "unpacking the arm64 Rust std $RUSTV"
    rm -rf sysroot; mkdir -p sysroot
    dpkg -x debs/libstd-rust-web-dev_*_arm64.deb sysroot
    echo "$RUSTV" >sysroot/.ver
fi
say "done: $RIG (kernel $KVER)"
ls -la vmlinuz initrd.cpio arm_spe_timer.ko newest rootfs.ext4
