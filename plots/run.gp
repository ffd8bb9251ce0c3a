# Draws what `kbtp run --csv FOLDER` wrote: FOLDER/latency.svg and .png, FOLDER/utilisation.svg and .png.
# Usage: gnuplot -e "folder='FOLDER'" plots/run.gp
if (!exists("folder")) { print "usage: gnuplot -e \"folder='FOLDER'\" plots/run.gp"; exit status 2 }
set datafile separator ","
set key outside below
set grid lc rgb "#dddddd"
set border 3
set tics nomirror

do for [kind in "svg png"] {
    if (kind eq "svg") { set terminal svg size 900,500 font "sans,13" background "white" } \
    else { set terminal pngcairo size 900,500 font "sans,11" background "white" }

    set output folder."/latency.".kind
    set title "Latency: the share of requests that are not slower"
    set xlabel "microseconds"
    set ylabel "share"
    set logscale x
    set yrange [0:1]
    set format y "%.1f"
    file = folder."/latency.csv"
    operations = system("tail -n +2 '".file."' | cut -d, -f1 | uniq")
    plot for [it in operations] \
        file using (strcol(1) eq it ? $2 : NaN):3 with steps lw 2 title it noenhanced

    set output folder."/utilisation.".kind
    set title "Use over time"
    set xlabel "microseconds since it is measured"
    unset logscale x
    set ylabel "share, or CPUs"
    set yrange [0:*]
    file = folder."/utilisation.csv"
    plot file using 1:5 every ::1 with lines lw 2 title "busiest link", \
         file using 1:4 every ::1 with lines lw 2 title "busiest side of an RNIC", \
         file using 1:3 every ::1 with lines lw 2 title "target CPUs that are busy"
}
unset output
