#!/bin/bash
# record.sh - run one operation script on a fresh loop-mounted ext4 image and
# record what the journal and the block layer did.  See tests/README.md.
#
#   record.sh [-r REPEATS] [-s IMAGE_MIB] [-k MKFS_OPTS] [-o MOUNT_OPTS]
#             [-b BACKING_DIR] [-n NAME] [-t TRACE_OUT.xz] OPS OUT.json
#
# Needs root, loop devices, tracefs, e2fsprogs and a C compiler.
set -u
export LC_ALL=C
HERE=$(cd "$(dirname "$0")" && pwd)
REPEATS=1 SIZE=256 MKFS="" MOPT="" BACK=${TMPDIR:-/tmp} NAME="" TRACE=""
while getopts r:s:k:o:b:n:t: c; do
  case $c in
    r) REPEATS=$OPTARG;; s) SIZE=$OPTARG;; k) MKFS=$OPTARG;; o) MOPT=$OPTARG;;
    b) BACK=$OPTARG;; n) NAME=$OPTARG;; t) TRACE=$OPTARG;; *) exit 2;;
  esac
done
shift $((OPTIND - 1))
OPS=$1 OUT=$2
NAME=${NAME:-$(basename "$OPS" .txt)}

W=$(mktemp -d) IMG=$(mktemp -p "$BACK" gt.XXXXXX.img)
DRV=${OPDRIVER:-}
if [ -z "$DRV" ]; then cc -O2 -pthread -o "$W/opdriver" "$HERE/opdriver.c" || exit 2; DRV=$W/opdriver; fi
TR=/sys/kernel/tracing/instances/gt_$$
LOOP=
cleanup() {
  mountpoint -q "$W/m" && umount "$W/m"
  [ -n "$LOOP" ] && losetup -d "$LOOP" 2>/dev/null
  [ -d "$TR" ] && { echo 0 >"$TR/tracing_on"; rmdir "$TR"; }
  rm -rf "$W" "$IMG"
}
trap cleanup EXIT
trap 'exit 1' TERM INT
mkdir "$W/m" "$TR" || exit 2
echo 49152 >"$TR/buffer_size_kb"
echo mono >"$TR/trace_clock"

UUID=0badcafe-1234-5678-9abc-0123456789ab
EVENTS="jbd2/jbd2_run_stats jbd2/jbd2_start_commit jbd2/jbd2_end_commit jbd2/jbd2_checkpoint
 jbd2/jbd2_checkpoint_stats jbd2/jbd2_shrink_checkpoint_list jbd2/jbd2_update_log_tail
 jbd2/jbd2_write_superblock jbd2/jbd2_handle_stats
 ext4/ext4_fc_commit_start ext4/ext4_fc_commit_stop ext4/ext4_fc_stats ext4/ext4_fc_cleanup
 ext4/ext4_fc_track_create ext4/ext4_fc_track_link ext4/ext4_fc_track_unlink
 ext4/ext4_fc_track_inode ext4/ext4_fc_track_range
 ext4/ext4_sync_file_enter ext4/ext4_sync_file_exit ext4/ext4_sync_fs
 ext4/ext4_journal_start_inode ext4/ext4_journal_start_sb ext4/ext4_journal_start_reserved
 block/block_bio_queue block/block_rq_issue block/block_rq_complete"

mark() { echo "phase $1" >"$TR/trace_marker"; }
blkstat() { # label
  awk -v l="$1" '{print l, $1, $3, $5, $7, $12, $14, $16}' "/sys/block/$LN/stat" >>"$W/stat"
}

one() { # index
  local i=$1 minor dev
  rm -f "$W/stat" "$W/flat.$i"; : >"$W/counts"
  : >"$IMG"; truncate -s "${SIZE}M" "$IMG"
  mke2fs -q -F -t ext4 -U $UUID -E lazy_itable_init=0,lazy_journal_init=0,hash_seed=$UUID,nodiscard \
    $MKFS "$IMG" 2>"$W/mkfs.err" || { cat "$W/mkfs.err"; return 1; }
  dumpe2fs "$IMG" 2>/dev/null >"$W/dump"
  debugfs -R 'dump_extents <8>' "$IMG" 2>/dev/null >"$W/ext"
  LOOP=$(losetup -f --show "$IMG") || return 1
  LN=${LOOP#/dev/}
  IFS=: read -r maj minor < "/sys/block/$LN/dev"
  dev=$((maj << 20 | minor))
  echo 0 >"$TR/tracing_on"; echo >"$TR/trace"
  for e in $EVENTS; do
    [ -d "$TR/events/$e" ] || continue
    echo "dev == $dev" >"$TR/events/$e/filter" && echo 1 >"$TR/events/$e/enable"
  done
  echo 1 >"$TR/tracing_on"
  blkstat t0; mark mount
  mount -t ext4 ${MOPT:+-o "$MOPT"} "$LOOP" "$W/m" || { losetup -d "$LOOP"; LOOP=; return 1; }
  grep " $W/m " /proc/mounts | awk '{print $4}' >"$W/mopts"
  blkstat t1; mark run
  "$DRV" -p -m "$TR/trace_marker" -c "$W/counts" "$W/m" "$OPS"; local rc=$?
  mark umount; blkstat t2
  cp "/proc/fs/jbd2/$LN-8/info" "$W/jinfo" 2>/dev/null || : >"$W/jinfo"
  cp "/proc/fs/ext4/$LN/fc_info" "$W/fcinfo" 2>/dev/null || : >"$W/fcinfo"
  umount "$W/m"
  blkstat t3
  echo 0 >"$TR/tracing_on"
  for e in $EVENTS; do [ -d "$TR/events/$e" ] && echo 0 >"$TR/events/$e/enable"; done
  cat "$TR/trace" >"$W/trace"
  local lost; lost=$(cat "$TR"/per_cpu/cpu*/stats | awk '/^(overrun|dropped events|commit overrun)/{s+=$NF}END{print s+0}')
  losetup -d "$LOOP"; LOOP=
  awk -v opsrc=$rc -v lost="$lost" -f "$HERE/summarize.awk" "$W/dump" "$W/ext" "$W/stat" "$W/counts" \
    "$W/jinfo" "$W/fcinfo" "$W/trace" | sort >"$W/flat.$i"
  [ $rc = 0 ]
}

RC=0
for i in $(seq 1 "$REPEATS"); do
  # A sync(2) by another program on the machine reaches this file system too;
  # such a repeat is thrown away and made again (up to 6 times).
  for try in 1 2 3 4 5 6; do
    one "$i" || { echo "$NAME: repeat $i failed" >&2; RC=1; break; }
    grep -q '^foreign_sync_calls 0$' "$W/flat.$i" && break
  done
  if [ "$i" = 1 ] && [ -n "$TRACE" ]; then
    awk -f "$HERE/compact.awk" "$W/trace" | xz -9 >"$TRACE"
  fi
done
sz=$(awk -F: '/^Block size/{print $2+0}' "$W/dump")
{
  printf 'C name "%s"\n' "$NAME"
  printf 'C kernel "%s"\n' "$(uname -r | grep -oE '^[0-9.]+')"
  printf 'C mkfs "%s"\n' "$MKFS"
  printf 'C mount "%s"\n' "$MOPT"
  printf 'C mount_effective "%s"\n' "$(cat "$W/mopts")"
  printf 'C image_mib %d\n' "$SIZE"
  printf 'C block_size %d\n' "$sz"
  printf 'C backing "%s"\n' "$(stat -f -c %T "$BACK")"
  printf 'C features "%s"\n' "$(sed -n 's/^Filesystem features: *//p' "$W/dump")"
  printf 'C journal_blocks %d\n' "$(awk '/^Total journal blocks/{print $NF}' "$W/dump")"
  printf 'C journal_fc_blocks %d\n' "$(awk '/^Fast commit length/{print $NF}' "$W/dump")"
  printf 'C repeats %d\n' "$REPEATS"
} >"$W/conf"
awk -f "$HERE/merge.awk" "$W/conf" "$W"/flat.* >"$OUT"
exit $RC
